#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/driver/byte_source.hpp"
#include "gpu/image/instruction.hpp"

/// A wait for the kernel before (griddepcontrol.wait) at the entry of compiled kernels.
///
/// A kernel's code begins with the load of its stack pointer and ends in a branch to itself and
/// NOPs. There are three forms; a kernel has the first that it can have.
/// - in place: where no other instruction uses the stack pointer, the wait replaces its load.
/// - moved: the wait is the second instruction, and the code from there on stands one instruction
///   further down, where a NOP was.
///
///       before:  LDC R1  a  b  c  BRA .  NOP NOP NOP
///       after:   LDC R1  WAIT  a  b  c  BRA .  NOP NOP
///
///   Where code goes counts from where it stands (CodeFlow). Numbers of instructions stand in the
///   kernel's table of facts and in symbols of functions behind it; those move along. Lines in
///   debug information do not.
/// - a detour: the first instruction becomes a branch to the NOPs, where three instructions go:
///   the one that was first, the wait, and a branch to the second. The GPU fetches both at every
///   launch: 0.05 to 0.1 us on an H100, where the other two cost nothing.
///
/// No size changes. In a launch that is not programmatic the wait does nothing.
namespace contextune::gpu {

/// Why a kernel cannot be given a wait.
enum class NoEntryWait {
  Architecture,  ///< its instructions are not known
  Unlinked,
  OwnWait,
  OwnTrigger,
  Entry,
  Relocation,
  NoRoom
};

struct NoEntryWaitInfo {
  NoEntryWait reason;
  std::string_view word;
  std::string_view sentence;
};

/// Every reason once.
[[nodiscard]] std::span<const NoEntryWaitInfo> no_entry_wait_table() noexcept;
[[nodiscard]] const NoEntryWaitInfo& info_of(NoEntryWait reason) noexcept;

/// Code for others is only listed.
inline constexpr int entry_wait_architecture = 90;

/// How a kernel is given one.
enum class EntryWaitForm { InPlace, Moved, Detour };

/// "in_place", "moved" or "detour".
[[nodiscard]] std::string_view name_of(EntryWaitForm form) noexcept;

/// A kernel in machine code. A plain value.
struct CodeKernel {
  std::string symbol;
  int registers = 0;       ///< of a thread; 0: the image does not say
  std::uint64_t code = 0;  ///< where its instructions begin in the image
  EntryWaitForm form = EntryWaitForm::InPlace;
  std::uint64_t room = 0;  ///< where the NOPs behind them begin in the image; 0: it needs none
  /// Where the image has numbers of instructions that move, in four bytes each.
  std::vector<std::uint64_t> numbers;
  std::optional<NoEntryWait> reason;  ///< empty: it can be given a wait
  /// It, or a function of its image, lets the next kernel start early.
  bool triggers = false;
  /// It, or a function of its image, copies through tensor maps and has no fence for them.
  bool maps = false;
};

/// The kernels of one piece of machine code.
struct CodeKernels {
  int architecture = 0;   ///< 90 for sm_90 and sm_90a
  bool launches = false;  ///< code of it can launch from the device
  std::vector<CodeKernel> kernels;
};

/// Larger images are refused.
inline constexpr std::uint64_t most_code_bytes = std::uint64_t{512} << 20;

/// How long machine code in memory is, by its own tables. Empty: it is none.
[[nodiscard]] std::optional<std::uint64_t> machine_code_bytes(const ByteSource& image) noexcept;

/// Says of each kernel whether it can be given a wait.
/// @param image machine code, an ELF file; any bytes
/// @param why   set if it cannot be read, in which case nothing is returned
[[nodiscard]] std::optional<CodeKernels> read_code_kernels(std::string_view image,
                                                           std::string& why);

/// The size of a detour, behind the code.
inline constexpr std::size_t entry_wait_bytes = 3 * instruction_bytes;

/// Puts a wait at the entry of each kernel that can be given one.
/// @param kernels what read_code_kernels said of this image
void put_entry_waits(std::span<char> image, const CodeKernels& kernels) noexcept;

}  // namespace contextune::gpu
