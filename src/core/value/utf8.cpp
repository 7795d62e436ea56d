#include "core/value/utf8.hpp"

namespace contextune {
namespace {

std::uint32_t byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

}  // namespace

Utf8Character first_character(std::string_view text) {
  const std::uint32_t lead = byte_at(text, 0);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return {lead, 1, false};
  std::uint32_t code = lead & (0x7fU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    const std::uint32_t next = byte_at(text, i);
    if ((next & 0xc0U) != 0x80U) return {lead, 1, false};
    code = (code << 6U) | (next & 0x3fU);
  }
  const bool overlong = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (overlong || surrogate || code > 0x10ffff) return {lead, 1, false};
  return {code, size, true};
}

bool is_control(std::uint32_t code) {
  const bool c0 = code < 0x20 || code == 0x7f;
  const bool c1 = code >= 0x80 && code < 0xa0;
  // Line and paragraph separators, and marks that reorder what stands around them.
  const bool layout = code == 0x2028 || code == 0x2029 || code == 0x200e || code == 0x200f ||
                      (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return c0 || c1 || layout || code == 0xfeff;
}

}  // namespace contextune
