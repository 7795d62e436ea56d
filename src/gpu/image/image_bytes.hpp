#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

namespace contextune::gpu {

/// The bytes of an image that is being made, at an address that never changes.
///
/// Images of megabytes are made while the program waits: their pages are taken at once, and large
/// ones where the system has them, instead of one fault a page. Not thread-safe.
class ImageBytes {
 public:
  ImageBytes() noexcept = default;
  /// All zero. Throws std::bad_alloc.
  explicit ImageBytes(std::size_t bytes);
  ~ImageBytes();
  ImageBytes(ImageBytes&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  ImageBytes& operator=(ImageBytes&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  [[nodiscard]] char* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::span<char> span() const noexcept { return {data_, size_}; }
  operator std::string_view() const noexcept { return {data_, size_}; }

 private:
  char* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace contextune::gpu
