#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <contextune/key.hpp>

/// What a key function may return: a whole number, a truth value, an enum, a text, a pair, tuple or
/// array of these, or a Key. Those without text and Keys are looked up without an allocation.
namespace contextune::detail {

template <class Part>
concept WholePart = std::is_integral_v<Part> || std::is_enum_v<Part>;
template <class Part>
concept TextPart = std::is_convertible_v<const Part&, std::string_view> && !WholePart<Part>;
template <class Result>
concept SeveralParts = !TextPart<Result> && requires {
  std::tuple_size<Result>::value;
};

/// The raw parts of a key, as they are looked up: as many words, and their hash.
class KeyWords {
 public:
  static constexpr std::size_t most = 16;

  void add(std::uint64_t word) noexcept {
    words_[count_++] = word;
    hash_ = (hash_ ^ word) * 0x9e3779b97f4a7c15U;
    hash_ ^= hash_ >> 29U;
  }
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] bool operator==(const KeyWords& other) const noexcept {
    if (hash_ != other.hash_ || count_ != other.count_) return false;
    for (std::size_t i = 0; i < count_; ++i)
      if (words_[i] != other.words_[i]) return false;
    return true;
  }
  /// Whether all words but the last are the same.
  [[nodiscard]] bool differs_in_last_only(const KeyWords& other) const noexcept {
    if (count_ != other.count_ || count_ == 0) return false;
    for (std::size_t i = 0; i + 1 < count_; ++i)
      if (words_[i] != other.words_[i]) return false;
    return true;
  }

 private:
  std::array<std::uint64_t, most> words_;  // as many as count_ says are set
  std::size_t count_ = 0;
  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

template <class Result>
struct AreWhole : std::bool_constant<WholePart<Result>> {};
template <SeveralParts Result>
struct AreWhole<Result> {
  static constexpr bool value = []<std::size_t... i>(std::index_sequence<i...>) {
    return (WholePart<std::remove_cvref_t<std::tuple_element_t<i, Result>>> && ...);
  }
  (std::make_index_sequence<std::tuple_size_v<Result>>());
};
/// Whether the words say all that there is to the key; else there is a Key beside them.
template <class Result>
inline constexpr bool are_whole = AreWhole<std::remove_cvref_t<Result>>::value;

template <WholePart Part>
[[nodiscard]] constexpr std::uint64_t word_of(Part part) noexcept {
  return static_cast<std::uint64_t>(part);
}

/// @param result of which are_whole is true
template <class Result>
void add_words(KeyWords& words, const Result& result) noexcept {
  if constexpr (SeveralParts<Result>) {
    static_assert(std::tuple_size_v<Result> + 2 <= KeyWords::most, "a key has at most 14 parts");
    std::apply([&](const auto&... parts) { (words.add(word_of(parts)), ...); }, result);
  } else {
    words.add(word_of(result));
  }
}

template <class Part>
[[nodiscard]] Key::Part key_part_of(const Part& part) {
  static_assert(
      WholePart<Part> || TextPart<Part>,
      "a key function returns whole numbers, truth values, enums, texts, a pair, tuple or "
      "array of these, or a contextune::Key");
  if constexpr (WholePart<Part>) {
    return static_cast<std::int64_t>(part);
  } else {
    return std::string(std::string_view(part));
  }
}

/// "key=5" of one part, "key1=5 key2=f16" of several, and a Key as it is.
template <class Result>
[[nodiscard]] Key key_of_result(const Result& result) {
  if constexpr (std::is_same_v<Result, Key>) {
    return result;
  } else if constexpr (SeveralParts<Result>) {
    Key key;
    int number = 0;
    std::apply(
        [&](const auto&... parts) {
          (key.add("key" + std::to_string(++number), key_part_of(parts)), ...);
        },
        result);
    return key;
  } else {
    return Key{{"key", key_part_of(result)}};
  }
}

}  // namespace contextune::detail
