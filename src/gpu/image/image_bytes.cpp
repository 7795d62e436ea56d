#include "gpu/image/image_bytes.hpp"

#include <sys/mman.h>

#include <new>

namespace contextune::gpu {

ImageBytes::ImageBytes(std::size_t bytes) {
  if (bytes == 0) return;
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  // Where the system knows neither, each page comes when it is written.
  (void)madvise(memory, bytes, MADV_HUGEPAGE);
#ifdef MADV_POPULATE_WRITE
  (void)madvise(memory, bytes, MADV_POPULATE_WRITE);
#endif
  data_ = static_cast<char*>(memory);
  size_ = bytes;
}

ImageBytes::~ImageBytes() {
  if (data_ != nullptr) (void)munmap(data_, size_);
}

}  // namespace contextune::gpu
