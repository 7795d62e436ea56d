#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace contextune {

/// Appends numbers, little endian, and texts to a buffer.
class ByteWriter {
 public:
  explicit ByteWriter(std::vector<std::byte>& bytes) : bytes_(bytes) {}

  template <class Unsigned>
  void number(Unsigned value) {
    static_assert(std::is_unsigned_v<Unsigned>);
    std::array<std::byte, sizeof(Unsigned)> digits;
    for (std::size_t i = 0; i < sizeof(Unsigned); ++i)
      digits[i] = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i));
    bytes_.insert(bytes_.end(), digits.begin(), digits.end());
  }
  void raw(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  /// With its length before it.
  void block(std::span<const std::byte> bytes) {
    number(static_cast<std::uint32_t>(bytes.size()));
    raw(bytes);
  }
  void text(std::string_view text) { block(std::as_bytes(std::span(text.data(), text.size()))); }

 private:
  std::vector<std::byte>& bytes_;
};

/// Takes the same apart again. Missing bytes read as zero and make it fail; a length is compared
/// with the bytes left before anything is allocated.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class Unsigned>
  [[nodiscard]] Unsigned number() {
    static_assert(std::is_unsigned_v<Unsigned>);
    const std::span<const std::byte> taken = raw(sizeof(Unsigned));
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < taken.size(); ++i)
      value |= static_cast<std::uint64_t>(taken[i]) << (8 * i);
    return static_cast<Unsigned>(value);
  }
  [[nodiscard]] std::span<const std::byte> raw(std::size_t size) {
    if (size > bytes_.size()) {
      failed_ = true;
      bytes_ = {};
      return {};
    }
    const std::span<const std::byte> taken = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return taken;
  }
  [[nodiscard]] std::span<const std::byte> block() { return raw(number<std::uint32_t>()); }
  [[nodiscard]] std::string text() {
    const std::span<const std::byte> taken = block();
    std::string result;
    result.reserve(taken.size());
    for (const std::byte byte : taken) result.push_back(static_cast<char>(byte));
    return result;
  }

  [[nodiscard]] std::size_t left() const noexcept { return bytes_.size(); }
  /// Whether something was asked for that was not there.
  [[nodiscard]] bool failed() const noexcept { return failed_; }

 private:
  std::span<const std::byte> bytes_;
  bool failed_ = false;
};

}  // namespace contextune
