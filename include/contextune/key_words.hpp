#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include <contextune/key.hpp>

/// A key function may return a Key, a whole number, a truth value, an enum or a text. It may also
/// return an optional, pair, tuple, array, vector or other range of these, and these within one
/// another. The lookup of a result without texts and ranges makes no allocation.
namespace contextune::detail {

template <class Part>
concept WholePart = std::is_integral_v<Part> || std::is_enum_v<Part>;
template <class Part>
concept TextPart = std::is_convertible_v<const Part&, std::string_view> && !WholePart<Part>;
template <class Result>
concept SeveralParts = !TextPart<Result> && requires {
  std::tuple_size<Result>::value;
};
template <class Part>
inline constexpr bool is_optional = false;
template <class Part>
inline constexpr bool is_optional<std::optional<Part>> = true;
template <class Part>
concept OptionalPart = is_optional<Part>;
/// A path, which is a range of paths, is none.
template <class Part>
concept ListPart = !TextPart<Part> && !SeveralParts<Part> && std::ranges::input_range<const Part> &&
                   !std::is_same_v<std::ranges::range_value_t<const Part>, Part>;

/// The raw parts of a key, as they are looked up: as many words, and their hash.
class KeyWords {
 public:
  static constexpr std::size_t most = 16;

  void add(std::uint64_t word) noexcept {
    words_[count_++] = word;
    hash_ = (hash_ ^ word) * 0x9e3779b97f4a7c15U;
    hash_ ^= hash_ >> 29U;
  }
  /// Adds a text, in words of eight characters.
  /// @return false: there is no room for it, and nothing was added
  [[nodiscard]] bool add_text(std::string_view text) noexcept {
    if (text.size() > (most - count_) * sizeof(std::uint64_t)) return false;
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      word = word << 8U | static_cast<unsigned char>(text[i]);
      if (i % sizeof word == sizeof word - 1 || i + 1 == text.size()) add(std::exchange(word, 0));
    }
    return true;
  }
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] bool operator==(const KeyWords& other) const noexcept {
    if (hash_ != other.hash_ || count_ != other.count_) return false;
    for (std::size_t i = 0; i < count_; ++i)
      if (words_[i] != other.words_[i]) return false;
    return true;
  }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325U;
  std::size_t count_ = 0;
  std::array<std::uint64_t, most> words_;  // as many as count_ says are set
};

inline constexpr std::size_t no_words = KeyWords::most + 1;

/// How many words say all that there is to a result; no_words: it takes a Key.
template <class Result>
[[nodiscard]] constexpr std::size_t num_words() noexcept {
  if constexpr (WholePart<Result>) {
    return 1;
  } else if constexpr (OptionalPart<Result>) {
    return std::min(no_words, 1 + num_words<typename Result::value_type>());
  } else if constexpr (SeveralParts<Result>) {
    return []<std::size_t... i>(std::index_sequence<i...>) {
      std::size_t sum = 0;
      ((sum += num_words<std::remove_cvref_t<std::tuple_element_t<i, Result>>>()), ...);
      return std::min(no_words, sum);
    }
    (std::make_index_sequence<std::tuple_size_v<Result>>());
  } else {
    return no_words;
  }
}
/// Whether words say all that there is to the key, with room for a size; else there is a Key beside
/// them.
template <class Result>
inline constexpr bool are_whole = num_words<std::remove_cvref_t<Result>>() + 2 <= KeyWords::most;

/// @param result null: an optional around it is empty
template <class Result>
void add_words_at(KeyWords& words, const Result* result) noexcept {
  if constexpr (WholePart<Result>) {
    words.add(result == nullptr ? 0 : static_cast<std::uint64_t>(*result));
  } else if constexpr (OptionalPart<Result>) {
    const bool has_value = result != nullptr && result->has_value();
    words.add(has_value ? 1 : 0);
    add_words_at(words, has_value ? &**result : nullptr);
  } else {
    [&]<std::size_t... i>(std::index_sequence<i...>) {
      (add_words_at(words, result == nullptr ? nullptr : &std::get<i>(*result)), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<Result>>());
  }
}
/// @param result of which are_whole is true
template <class Result>
void add_words(KeyWords& words, const Result& result) noexcept {
  add_words_at(words, &result);
}

template <WholePart Part>
[[nodiscard]] Key::Part whole_part(Part part) {
  // Beyond what a whole number of a key holds it would turn negative.
  if constexpr (std::is_unsigned_v<Part> && sizeof(Part) == sizeof(std::int64_t)) {
    if (part > static_cast<Part>(std::numeric_limits<std::int64_t>::max()))
      return std::to_string(part);
  }
  return static_cast<std::int64_t>(part);
}

/// As it stands within another part: "(4:[8:16]:\"f16\":none)".
template <class Part>
[[nodiscard]] std::string nested_text(const Part& part) {
  std::string text;
  const auto add = [&](const auto& one) { text += (text.empty() ? "" : ":") + nested_text(one); };
  if constexpr (WholePart<Part>) {
    const Key::Part whole = whole_part(part);
    const auto* const number = std::get_if<std::int64_t>(&whole);
    return number != nullptr ? std::to_string(*number) : std::get<std::string>(whole);
  } else if constexpr (TextPart<Part>) {
    for (const char c : std::string_view(part)) {
      if (c == '"' || c == '\\') text += '\\';
      text += c;
    }
    return '"' + text + '"';
  } else if constexpr (OptionalPart<Part>) {
    return part.has_value() ? nested_text(*part) : "none";
  } else if constexpr (SeveralParts<Part>) {
    std::apply([&](const auto&... parts) { (add(parts), ...); }, part);
    return '(' + text + ')';
  } else {
    static_assert(ListPart<Part>,
                  "a key function returns whole numbers, truth values, enums, texts, optionals, "
                  "pairs, tuples, arrays, vectors or other ranges of these, or a contextune::Key");
    using Element = std::ranges::range_value_t<const Part>;
    for (const auto& one : part) add(static_cast<const Element&>(one));
    return '[' + text + ']';
  }
}

/// An optional that is empty adds nothing.
template <class Part>
void add_part(Key& key, std::string name, const Part& part) {
  if constexpr (WholePart<Part>) {
    key.add(std::move(name), whole_part(part));
  } else if constexpr (TextPart<Part>) {
    key.add(std::move(name), std::string(std::string_view(part)));
  } else if constexpr (OptionalPart<Part>) {
    if (part.has_value()) add_part(key, std::move(name), *part);
  } else {
    key.add(std::move(name), nested_text(part));
  }
}

/// "key=5" of one part, "key1=5 key2=f16 key3=(2:3)" of several, and a Key as it is.
template <class Result>
[[nodiscard]] Key key_of_result(const Result& result) {
  Key key;
  if constexpr (std::is_same_v<Result, Key>) {
    return result;
  } else if constexpr (SeveralParts<Result>) {
    int number = 0;
    std::apply(
        [&](const auto&... parts) {
          (add_part(key, "key" + std::to_string(++number), parts), ...);
        },
        result);
  } else {
    add_part(key, "key", result);
  }
  return key;
}

}  // namespace contextune::detail
