#pragma once

#include <cstddef>
#include <cstdint>

namespace contextune::gpu {

/// An instruction of sm_90.
struct Instruction {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  /// The operation and the form of its operands; above them stands the predicate.
  [[nodiscard]] constexpr unsigned operation() const { return low & 0xfff; }
};

inline constexpr std::size_t instruction_bytes = sizeof(Instruction);

/// The operand bits of the high word; above them stand stalls and barriers.
inline constexpr std::uint64_t operand_bits = (std::uint64_t{1} << 41) - 1;

/// How far behind its own end a branch goes.
[[nodiscard]] constexpr std::int64_t branch_bytes(const Instruction& branch) {
  // Words of four bytes, in three pieces of 8, 30 and 18 bits.
  const std::uint64_t words =
      (branch.low >> 16 & 0xff) | (branch.low >> 34) << 8 | (branch.high & 0x3ffff) << 38;
  return static_cast<std::int64_t>(words << 8) / 256 * 4;
}

/// When an instruction is issued and what it waits for.
struct Schedule {
  unsigned stall = 0;          ///< cycles until the next
  unsigned write_barrier = 0;  ///< set until its result is there; `no_barrier`: none
  unsigned read_barrier = 0;   ///< set until its operands are read
  unsigned waits = 0;          ///< for these barriers, one bit each
  unsigned reuse = 0;          ///< operands that are kept for the next

  static constexpr unsigned no_barrier = 7;
  static constexpr unsigned barriers = 6;

  explicit constexpr Schedule(const Instruction& of)
      : stall(of.high >> 41 & 0xf),
        write_barrier(of.high >> 46 & 7),
        read_barrier(of.high >> 49 & 7),
        waits(of.high >> 52 & 0x3f),
        reuse(of.high >> 58 & 0xf) {}
};

}  // namespace contextune::gpu
