#include "store/json_text.hpp"

#include "core/value/utf8.hpp"

namespace contextune::store {
namespace {

constexpr std::string_view mark = "\xef\xbf\xbd";  // U+FFFD
constexpr std::string_view digits = "0123456789ABCDEF";

void escape(std::string& text, std::string_view bytes) {
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text.append(mark);
    text += digits[byte >> 4U];
    text += digits[byte & 15U];
  }
}

}  // namespace

std::string to_json_text(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const Utf8Character character = first_character(bytes);
    const std::string_view piece = bytes.substr(0, character.size_bytes);
    if (character.valid && piece != mark) {
      text.append(piece);
    } else {
      escape(text, piece);
    }
    bytes.remove_prefix(piece.size());
  }
  return text;
}

std::optional<std::string> from_json_text(std::string_view text) {
  if (text.find(mark) == std::string_view::npos) return std::string(text);
  std::string bytes;
  for (std::string_view rest = text; !rest.empty();) {
    if (!rest.starts_with(mark)) {
      bytes += rest.front();
      rest.remove_prefix(1);
      continue;
    }
    rest.remove_prefix(mark.size());
    const std::size_t high = rest.size() < 2 ? digits.npos : digits.find(rest[0]);
    const std::size_t low = rest.size() < 2 ? digits.npos : digits.find(rest[1]);
    if (high == digits.npos || low == digits.npos) return std::nullopt;
    bytes += static_cast<char>(high * 16 + low);
    rest.remove_prefix(2);
  }
  // Each text has one spelling: what was escaped without need would be another file for the same.
  if (to_json_text(bytes) != text) return std::nullopt;
  return bytes;
}

}  // namespace contextune::store
