#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace contextune {

/// Whether all of the text is a number that fits; `number` holds it then. @param base of a whole
/// number, if it is not 10
template <typename Number, typename... Base>
[[nodiscard]] bool read_number(std::string_view text, Number& number, Base... base) noexcept {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, base...);
  return error == std::errc{} && stop == end;
}

template <typename Number>
[[nodiscard]] std::optional<Number> parse_number(std::string_view text) noexcept {
  Number number{};
  return read_number(text, number) ? std::optional(number) : std::nullopt;
}

}  // namespace contextune
