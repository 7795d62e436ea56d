#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <contextune/key.hpp>

namespace contextune::collective {

/// Sizes of messages that are one problem, both ends included.
struct SizeBucket {
  static constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t low_bytes = 0;
  std::uint64_t high_bytes = no_limit;

  [[nodiscard]] bool operator==(const SizeBucket& other) const = default;
};

/// How sizes of messages are grouped into problems. A value.
class SizeBuckets {
 public:
  /// Powers of two, rounded up.
  SizeBuckets() = default;

  /// "pow2", "exact", or upper edges in ascending order: "4096,64K,1M". What is larger than the
  /// last edge is one more bucket. @throws Error that quotes what it cannot use
  [[nodiscard]] static SizeBuckets parse(std::string_view text);

  /// What parse reads.
  [[nodiscard]] std::string to_string() const;

  [[nodiscard]] SizeBucket bucket_of(std::uint64_t bytes) const noexcept;

  /// The bucket in a key: "32769-65536", "over:1048576", or the size itself where sizes are exact.
  [[nodiscard]] Key::Part key_part(std::uint64_t bytes) const;

  /// The bucket that a text of key_part stands for; absent: it is none.
  [[nodiscard]] static std::optional<SizeBucket> bucket_of_key(std::string_view text) noexcept;

  [[nodiscard]] bool operator==(const SizeBuckets& other) const = default;

 private:
  enum class Kind { PowerOfTwo, Edges, Exact };

  Kind kind_ = Kind::PowerOfTwo;
  std::vector<std::uint64_t> edges_;
};

// Sizes are near by their ratio; in whole numbers, so that every rank finds the same.

/// Whether `one` is nearer to `bytes` than `other` is. Of two that are as near it is the smaller.
[[nodiscard]] bool is_nearer(std::uint64_t one, std::uint64_t other, std::uint64_t bytes) noexcept;

/// Whether one size is at most `times` times the other.
[[nodiscard]] bool are_within(std::uint64_t one, std::uint64_t other, std::uint32_t times) noexcept;

}  // namespace contextune::collective
