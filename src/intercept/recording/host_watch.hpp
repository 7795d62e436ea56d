#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "intercept/memory/allocation_map.hpp"
#include "intercept/recording/recording.hpp"

namespace contextune::intercept {

/// Host memory within the GPU's reach, watched from the beginning of a region to its end. A kernel
/// may know it by an address that lies in device memory, and its writes there cannot be put back.
/// Used by one thread.
class HostWatch {
 public:
  /// Remembers what is there.
  /// @return false: it is more than is looked at (2 GiB), or cannot be read
  [[nodiscard]] bool begin(std::span<const Allocation> allocations);

  /// After the region: keeps what has changed and no copy of the recording reads or writes. It was
  /// the host that wrote there, or a kernel: a run of the kernels alone tells.
  /// @return whether there is any
  [[nodiscard]] bool keep_unexplained(const Recording& recording);

  /// After such a run: puts back what was kept.
  /// @return whether it had changed
  [[nodiscard]] bool put_back();

 private:
  struct Block {
    std::uintptr_t begin = 0;
    std::size_t bytes = 0;
    std::uint64_t hash = 0;
    std::vector<std::byte> kept;
  };
  std::vector<Block> blocks_;
};

}  // namespace contextune::intercept
