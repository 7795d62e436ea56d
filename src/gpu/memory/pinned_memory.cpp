#include "gpu/memory/pinned_memory.hpp"

namespace contextune::gpu {

void PinnedMemory::reserve(std::size_t bytes) {
  if (bytes <= bytes_) return;
  release();
  const RelaxedCapture relaxed(driver_);
  const CurrentContext current(driver_, context_);
  check(driver_, driver_.cuMemHostAlloc(&data_, bytes, CU_MEMHOSTALLOC_DEVICEMAP),
        "host memory that the GPU can use");
  bytes_ = bytes;
}

void PinnedMemory::release() noexcept {
  if (data_ != nullptr) {
    const RelaxedCapture relaxed(driver_);
    const CurrentContext current(driver_, context_);
    (void)driver_.cuMemFreeHost(data_);
  }
  abandon();
}

void PinnedMemory::abandon() noexcept {
  data_ = nullptr;
  bytes_ = 0;
}

}  // namespace contextune::gpu
