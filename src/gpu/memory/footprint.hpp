#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <cuda.h>

namespace contextune::gpu {

struct MemoryRange {
  CUdeviceptr begin = 0;
  std::size_t bytes = 0;

  [[nodiscard]] CUdeviceptr end() const noexcept { return begin + bytes; }
  bool operator==(const MemoryRange&) const = default;
};

/// Memory that is looked at in blocks of 64 KiB: sorted, disjoint ranges, each cut from its
/// beginning, so that its last block may be shorter. Blocks are numbered through all ranges in the
/// order of their addresses. Immutable but for assignment; holds no memory itself.
class Footprint {
 public:
  static constexpr std::size_t block_bytes = std::size_t{64} << 10U;

  /// The numbers `first` to `end`, without `end`.
  struct Blocks {
    std::uint32_t first = 0;
    std::uint32_t end = 0;
    [[nodiscard]] bool empty() const noexcept { return first == end; }
  };

  Footprint() = default;

  /// Takes ranges in any order. Empty ones are left out, overlapping ones become one. Ranges that
  /// only touch stay apart, as they are different allocations, which no driver call may span.
  /// @throws Error if a range ends behind the last address, or they have more blocks than can be
  ///         numbered (256 TiB)
  explicit Footprint(std::vector<MemoryRange> ranges);

  [[nodiscard]] const std::vector<MemoryRange>& ranges() const noexcept { return ranges_; }
  [[nodiscard]] std::uint32_t num_blocks() const noexcept { return num_blocks_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  /// @param number below num_blocks()
  [[nodiscard]] MemoryRange block(std::uint32_t number) const noexcept;

  /// All blocks of the range that this block belongs to.
  [[nodiscard]] Blocks range_of(std::uint32_t number) const noexcept;

  /// The blocks that a range touches, as far as it lies in the footprint.
  [[nodiscard]] Blocks blocks_of(MemoryRange range) const noexcept;

  /// Whether all of a range lies in the footprint; an empty one does.
  [[nodiscard]] bool contains(MemoryRange range) const noexcept;

  bool operator==(const Footprint& other) const noexcept { return ranges_ == other.ranges_; }

 private:
  [[nodiscard]] std::size_t range_of_address(CUdeviceptr address) const noexcept;

  std::vector<MemoryRange> ranges_;
  std::vector<std::uint32_t> first_blocks_;  ///< of each range
  std::uint32_t num_blocks_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace contextune::gpu
