#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ordering.hpp"

/// How a piece of device memory comes about. Published is a variable of a module that has nothing
/// to do with the region; only a kernel of it told the program where it is.
enum class MemoryKind { Alloc, Pitch, Async, Pool, Global, Published, Virtual, Managed, Shared };

struct MemoryPlan {
  MemoryKind kind = MemoryKind::Alloc;
  std::size_t bytes = 0;
};

/// Words inside some memory. Several may share one piece; nothing overlaps.
struct BufferPlan {
  std::size_t memory = 0;
  std::size_t first_byte = 0;  ///< a multiple of 4
  std::uint32_t words = 0;
  /// Only kernels change it, and in a way that loses nothing: what went wrong in it once can be
  /// seen at the end.
  bool kept = false;
};

/// Host memory that the GPU reaches.
struct PinnedPlan {
  std::uint32_t words = 0;
  bool registered = false;  ///< the program's own pages, registered
  bool result = false;      ///< copies go there; else they come from there
  bool witness = false;     ///< of one copy only
};

// What the kernels do is in simulated_kernels.cpp.
enum class Family {
  Twist,
  Mix,
  Job,
  Through,
  Count,
  Tally,
  Recall,
  Odd,
  Shuffle,
  // These go to certain places only.
  Leave,
  Clear,
  Unstable
};
constexpr std::size_t num_families = 12;
constexpr std::size_t num_flavoured_families = 8;  ///< the first

/// What a kernel does with blocks of `wrong_block` threads: what it is for, something else in
/// its output, or a write to memory that it was not given.
enum class Flavour { Right, Wrong, Stray };
constexpr unsigned wrong_block = 96;

/// How a launch is made.
enum class Form { Parameters, Packed, Extended, Cooperative };

/// One thing that the program does.
struct Action {
  enum class Kind {
    Kernel,
    HostToDevice,
    DeviceToDevice,
    DeviceToHost,
    Set,
    Record,
    Wait,
    SynchroniseStream,
    SynchroniseEvent,
    SynchroniseAll,
    Query,
    WritePinned,   ///< the host changes pinned memory that it has waited for
    WriteResults,  ///< the host works on what came to it; with a value, to pinned memory too
    LoadModule,    ///< and launches a kernel of it, which writes a variable of it
    Graph,
    // The rest cannot be repeated.
    HostFunction,
    WaitValue,
    Allocate,
    Release,
    OtherThread,
    KernelOnHost,
    CopyWithPitch,
    Capture,
  };
  enum class Host { Pageable, Pinned };
  enum class CopyCall { Async, Waiting, AnyKind, AnyKindWaiting };

  Kind kind = Kind::Kernel;
  std::size_t stream = 0;
  bool per_thread_call = false;  ///< the entry points whose default stream is the thread's own
  std::size_t event = 0;

  Family family = Family::Twist;
  Flavour flavour = Flavour::Right;
  Form form = Form::Parameters;
  std::size_t module = 0;  ///< both have all kernels, and variables of their own
  unsigned block = 32;
  unsigned grid = 1;
  std::size_t victim_memory = 0;  ///< where a stray write goes
  std::size_t victim_byte = 0;

  std::size_t from = 0;  ///< a buffer, or a place in the table
  std::size_t to = 0;
  std::uint32_t words = 0;
  std::uint32_t value = 0;

  Host host = Host::Pageable;
  CopyCall call = CopyCall::Async;
  std::size_t pinned = 0;
  std::size_t bytes = 0;         ///< of a copy
  std::size_t offset_bytes = 0;  ///< in the buffer
  unsigned set_bits = 8;         ///< 8, 16, 32; with pitch: 2
  std::size_t graph = 0;
};

/// Kernels, copies on the device and memsets, one after another.
struct GraphPlan {
  std::vector<Action> nodes;
  bool calls_host = false;
};

constexpr std::size_t num_modules = 2;

/// A program with one region, made from a seed alone. It is right in every order that its events,
/// streams and waits allow.
struct Plan {
  std::uint64_t seed = 0;
  std::vector<StreamKind> streams;
  std::size_t num_events = 0;
  std::vector<MemoryPlan> memory;
  std::vector<BufferPlan> buffers;
  std::size_t table_buffer = 0;    ///< holds the addresses of others
  std::vector<std::size_t> table;  ///< of these, in the beginning and after each visit
  std::size_t mark_buffer = 0;     ///< a word that only a pair of kernels uses
  std::vector<PinnedPlan> pinned;
  std::vector<GraphPlan> graphs;
  unsigned visits = 1;
  bool deferred = true;       ///< effects come late and in any order that is allowed
  bool waits_between = true;  ///< the host waits after a visit, and looks at all memory
  std::vector<Action> region;
  std::vector<Action> between;
  /// Words of the rank log: how the visits are tuned, in order. "replay", or why not.
  std::vector<std::string> expected{"replay"};
  bool only_first_visit = false;  ///< what cannot be repeated is in that one alone
  /// Kernels with a config that must be found to be wrong.
  std::vector<std::string> wrong_kernels;
};

[[nodiscard]] Plan make_plan(std::uint64_t seed);

/// The name of a kernel in the space file and in the log.
[[nodiscard]] std::string kernel_name(Family family, Flavour flavour);

/// The region's range in the program.
[[nodiscard]] std::string region_name(std::uint64_t seed);

/// One line an action, for a person.
[[nodiscard]] std::string describe(const Plan& plan);
