#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace contextune::gpu {

/// Where an image's bytes come from. Reading never faults, whatever offsets the image itself names.
/// Any thread, unless it says otherwise.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  /// @return how many of `bytes` could be read from `offset`; short only at the end
  [[nodiscard]] virtual std::size_t read_some(std::uint64_t offset, void* to,
                                              std::size_t bytes) const noexcept = 0;

  [[nodiscard]] bool read(std::uint64_t offset, void* to, std::size_t bytes) const noexcept {
    return read_some(offset, to, bytes) == bytes;
  }
  template <typename T>
  [[nodiscard]] std::optional<T> read(std::uint64_t offset) const noexcept {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    if (!read(offset, &value, sizeof(T))) return std::nullopt;
    return value;
  }
  /// The bytes at `offset`. Empty: there are not so many, or more than an image can have.
  [[nodiscard]] std::optional<std::string> read_bytes(std::uint64_t offset,
                                                      std::uint64_t bytes) const;
  /// The text from `offset` up to a zero or the end.
  [[nodiscard]] std::optional<std::string> read_text(std::uint64_t offset) const;
};

/// No part of an image that we read is larger.
inline constexpr std::uint64_t most_image_bytes = std::uint64_t{1} << 30;

/// Bytes of ours.
class BufferSource final : public ByteSource {
 public:
  /// @param bytes outlive this
  explicit BufferSource(std::string_view bytes) noexcept : bytes_(bytes) {}
  [[nodiscard]] std::size_t read_some(std::uint64_t offset, void* to,
                                      std::size_t bytes) const noexcept override;

 private:
  std::string_view bytes_;
};

/// Memory of this process from an address on, which may have been freed or unmapped: the kernel
/// copies it, and says so where there is none. That takes a call of the system, so that small
/// pieces come from a window that is copied at once: memory that changes meanwhile may be seen as
/// it was. Used by one thread at a time.
class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(const void* address) noexcept : address_(address) {}
  [[nodiscard]] std::size_t read_some(std::uint64_t offset, void* to,
                                      std::size_t bytes) const noexcept override;

 private:
  [[nodiscard]] std::size_t copy(std::uint64_t offset, void* to, std::size_t bytes) const noexcept;

  const void* address_;
  mutable std::array<char, 4096> window_;
  mutable std::uint64_t window_begin_ = 0;
  mutable std::size_t window_bytes_ = 0;
};

/// A regular file, open as long as this lives.
class FileSource final : public ByteSource {
 public:
  explicit FileSource(const std::string& path) noexcept;
  ~FileSource() override;
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  [[nodiscard]] bool is_open() const noexcept { return descriptor_ >= 0; }
  /// Differs once the file is replaced or written to; "" if it is not open.
  [[nodiscard]] std::string version() const;
  [[nodiscard]] std::size_t read_some(std::uint64_t offset, void* to,
                                      std::size_t bytes) const noexcept override;

 private:
  int descriptor_;
};

}  // namespace contextune::gpu
