#pragma once

#include <cstddef>

#include "gpu/driver/driver.hpp"

namespace contextune::gpu {

/// Host memory that kernels read and write too, under the same address. Used by one thread at a
/// time.
class PinnedMemory {
 public:
  PinnedMemory(const Driver& driver, CUcontext context) noexcept
      : driver_(driver), context_(context) {}
  ~PinnedMemory() { release(); }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  /// Makes it at least so large; what was in it is lost then.
  /// @throws Error if the driver has no more; it is empty then
  void reserve(std::size_t bytes);

  void release() noexcept;
  /// Leaves it allocated for good: the GPU may still use it.
  void abandon() noexcept;

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] void* data() const noexcept { return data_; }

 private:
  const Driver& driver_;
  CUcontext context_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace contextune::gpu
