#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <contextune/export.hpp>
#include <contextune/key.hpp>

namespace contextune {

/// Sizes that are one problem, both ends included.
struct SizeBucket {
  static constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t low = 0;
  std::uint64_t high = no_limit;

  /// The size that stands for them where near sizes are looked for: the largest, if there is one.
  [[nodiscard]] std::uint64_t typical() const noexcept { return high == no_limit ? low : high; }
  [[nodiscard]] bool operator==(const SizeBucket& other) const = default;
};

/// How sizes of messages or problems are grouped, so that one winner holds for a range of them.
/// They are grouped by powers of two, by upper edges, or not at all. Sizes are what their author
/// counts in: bytes, elements, rows. A value type; const use from several threads is safe.
class CONTEXTUNE_EXPORT Buckets {
 public:
  /// Powers of two, rounded up.
  Buckets() = default;

  /// Every size is a bucket of its own.
  [[nodiscard]] static Buckets exact() noexcept;
  /// Upper edges in ascending order, each the last of its bucket. Sizes larger than the last edge
  /// form one more bucket.
  /// @throws Error if there is none, one is 0, or they do not ascend
  [[nodiscard]] static Buckets edges(std::vector<std::uint64_t> edges);

  /// "pow2", "exact", or upper edges: "4096,64K,1M". @throws Error that quotes what it cannot use
  [[nodiscard]] static Buckets parse(std::string_view text);

  /// The text that parse() reads.
  [[nodiscard]] std::string to_string() const;

  [[nodiscard]] SizeBucket bucket_of(std::uint64_t size) const noexcept;

  /// The bucket in a key: "32769-65536", "over:1048576", or the size itself where sizes are exact.
  [[nodiscard]] Key::Part key_part(std::uint64_t size) const;

  /// The bucket that a text of key_part stands for; absent: it is none.
  [[nodiscard]] static std::optional<SizeBucket> bucket_of_key(std::string_view text) noexcept;

  [[nodiscard]] bool operator==(const Buckets& other) const = default;

 private:
  enum class Kind : std::uint8_t { PowerOfTwo, Edges, Exact };

  Kind kind_ = Kind::PowerOfTwo;
  std::vector<std::uint64_t> edges_;
};

// Sizes are near by their ratio; in whole numbers, so that every rank finds the same.

/// Whether `one` is nearer to `size` than `other` is. The smaller of two equally near sizes wins.
[[nodiscard]] CONTEXTUNE_EXPORT bool is_nearer(std::uint64_t one, std::uint64_t other,
                                               std::uint64_t size) noexcept;

/// Whether one size is at most `times` times the other.
[[nodiscard]] CONTEXTUNE_EXPORT bool are_within(std::uint64_t one, std::uint64_t other,
                                                std::uint32_t times) noexcept;

}  // namespace contextune
