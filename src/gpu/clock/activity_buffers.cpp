#include "gpu/clock/activity_buffers.hpp"

#include <sys/mman.h>
#include <algorithm>
#include <cstring>
#include <new>

namespace contextune::gpu {

ActivityBuffers::ActivityBuffers() {
  void* memory = mmap(nullptr, num_buffers * buffer_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<std::uint8_t*>(memory);
}

std::uint8_t* ActivityBuffers::acquire() noexcept {
  const std::size_t first = next_.fetch_add(1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < num_buffers; ++i) {
    const std::size_t index = (first + i) % num_buffers;
    if (!used_[index].exchange(true, std::memory_order_acquire)) {
      return memory_ + index * buffer_bytes;
    }
  }
  return nullptr;
}

void ActivityBuffers::release(std::uint8_t* buffer, std::size_t used_bytes) noexcept {
  if (buffer < memory_ || buffer >= memory_ + num_buffers * buffer_bytes) return;
  const auto index = static_cast<std::size_t>(buffer - memory_) / buffer_bytes;
  std::memset(buffer, 0, std::min(used_bytes, buffer_bytes));
  used_[index].store(false, std::memory_order_release);
}

void ActivityBuffers::reclaim() noexcept {
  for (std::size_t index = 0; index < num_buffers; ++index) {
    if (!used_[index].load(std::memory_order_acquire)) continue;
    release(memory_ + index * buffer_bytes, buffer_bytes);
  }
}

}  // namespace contextune::gpu
