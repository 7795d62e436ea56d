#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace contextune {

/// A character of a text that claims to be UTF-8.
struct Utf8Character {
  std::uint32_t code = 0;
  std::size_t size_bytes = 1;
  bool valid = false;  ///< false: this one byte is no part of a well-formed character
};

/// The character at the start of `text`, which is not empty. Overlong forms, surrogates and codes
/// past U+10FFFF are not valid.
[[nodiscard]] Utf8Character first_character(std::string_view text);

/// Whether showing `code` on a terminal would do something else than print one character.
[[nodiscard]] bool is_control(std::uint32_t code);

}  // namespace contextune
