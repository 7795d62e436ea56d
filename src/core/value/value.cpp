#include <contextune/value.hpp>

#include <array>
#include <charconv>
#include <cmath>

#include "core/value/parse_number.hpp"

namespace contextune {
namespace {

std::string number_text(double number) {
  std::array<char, 64> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number);
  std::string text(buffer.data(), error == std::errc{} ? end : buffer.data());
  // Without a mark of its own, 2.0 would read back as a whole number.
  if (std::isfinite(number) && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

bool reads_as_text(const std::string& text) {
  return std::holds_alternative<std::string>(parse_value(text)) &&
         text.find_first_of(" \t\n\"\\=,") == std::string::npos && !text.empty();
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

}  // namespace

std::string to_string(const Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
  if (const auto* number = std::get_if<double>(&value)) return number_text(*number);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  const auto& text = std::get<std::string>(value);
  return reads_as_text(text) ? text : quoted(text);
}

Value parse_value(const std::string& text) {
  if (const auto whole = parse_number<std::int64_t>(text)) return *whole;
  if (const auto number = parse_number<double>(text)) return *number;
  if (text == "true") return true;
  if (text == "false") return false;
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return text;
  std::string plain;
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] == '\\' && i + 2 < text.size()) ++i;
    plain += text[i];
  }
  return plain;
}

}  // namespace contextune
