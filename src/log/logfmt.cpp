#include "log/logfmt.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/value/utf8.hpp"

namespace contextune::log {
namespace {

constexpr std::string_view parameter_prefix = "param.";
constexpr std::string_view hex_digits = "0123456789abcdef";

// Fields that may stand beside a config's parameters in a trial or a winner line.
constexpr std::array<std::string_view, 32> reserved_fields = {
    "run",      "pid",      "rank",      "level",     "event",      "region",
    "pass",     "site",     "key",       "config",    "iter",       "warmup",
    "launches", "time_us",  "timer",     "sm_mhz",    "status",     "default_us",
    "reason",   "text",     "simulated", "stage",     "generation", "wait_us",
    "measure",  "thread",   "mode",      "last_pass", "agreed",     "default_config",
    "began",    "region_us"};

bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-';
}

bool stands_bare(std::string_view value) {
  return !value.empty() && std::all_of(value.begin(), value.end(), [](char c) {
    return c > ' ' && c < '\x7f' && c != '"' && c != '=' && c != '\\';
  });
}

void append_hex(std::string& text, std::uint32_t value, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) {
    text += hex_digits[(value >> static_cast<unsigned>(shift)) & 0xfU];
  }
}

void append_escaped(std::string& text, std::string_view value, bool in_quotes) {
  while (!value.empty()) {
    const Utf8Character character = first_character(value);
    if (!character.valid) {
      text += "\\x";
      append_hex(text, character.code, 2);
    } else if (in_quotes && (character.code == '"' || character.code == '\\')) {
      text += '\\';
      text += static_cast<char>(character.code);
    } else if (character.code == '\n') {
      text += "\\n";
    } else if (character.code == '\r') {
      text += "\\r";
    } else if (character.code == '\t') {
      text += "\\t";
    } else if (is_control(character.code)) {
      text += "\\u";
      append_hex(text, character.code, 4);
    } else {
      text += value.substr(0, character.size_bytes);
    }
    value.remove_prefix(character.size_bytes);
  }
}

std::string_view cut_at_character(std::string_view value, std::size_t limit) {
  while (limit > 0 && (static_cast<unsigned char>(value[limit]) & 0xc0U) == 0x80U) --limit;
  return value.substr(0, limit);
}

void append_utf8(std::string& text, std::uint32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xc0U | (code >> 6U));
    text += static_cast<char>(0x80U | (code & 0x3fU));
  } else {
    text += static_cast<char>(0xe0U | (code >> 12U));
    text += static_cast<char>(0x80U | ((code >> 6U) & 0x3fU));
    text += static_cast<char>(0x80U | (code & 0x3fU));
  }
}

bool take_hex(std::string_view& rest, std::size_t digits, std::uint32_t& value) {
  if (rest.size() < digits) return false;
  value = 0;
  for (const char c : rest.substr(0, digits)) {
    const std::size_t digit = hex_digits.find(c);
    if (digit == std::string_view::npos) return false;
    value = value * 16 + static_cast<std::uint32_t>(digit);
  }
  rest.remove_prefix(digits);
  return true;
}

// `rest` starts behind the backslash.
bool take_escape(std::string_view& rest, std::string& value) {
  if (rest.empty()) return false;
  const char kind = rest.front();
  rest.remove_prefix(1);
  std::uint32_t code = 0;
  switch (kind) {
    case '"':
    case '\\':
      value += kind;
      return true;
    case 'n':
      value += '\n';
      return true;
    case 'r':
      value += '\r';
      return true;
    case 't':
      value += '\t';
      return true;
    case 'x':
      if (!take_hex(rest, 2, code)) return false;
      value += static_cast<char>(code);
      return true;
    case 'u':
      if (!take_hex(rest, 4, code)) return false;
      append_utf8(value, code);
      return true;
    default:
      return false;
  }
}

bool take_quoted(std::string_view& rest, std::string& value, std::string& why) {
  rest.remove_prefix(1);
  while (!rest.empty()) {
    const char c = rest.front();
    rest.remove_prefix(1);
    if (c == '"') {
      if (rest.empty() || rest.front() == ' ') return true;
      why = "no space behind a closing quote";
      return false;
    }
    if (c != '\\') {
      value += c;
    } else if (!take_escape(rest, value)) {
      why = "unknown escape in a quoted value";
      return false;
    }
  }
  why = "the line ends inside quotes (cut off?)";
  return false;
}

}  // namespace

void append_field(std::string& line, std::string_view name, std::string_view value) {
  if (!line.empty()) line += ' ';
  if (name.empty()) line += '_';
  for (const char c : name) line += is_name_byte(c) ? c : '_';
  line += '=';
  if (value.size() <= max_value_bytes && stands_bare(value)) {
    line += value;
    return;
  }
  line += '"';
  if (value.size() > max_value_bytes) {
    append_escaped(line, cut_at_character(value, max_value_bytes), true);
    line += "...";
  } else {
    append_escaped(line, value, true);
  }
  line += '"';
}

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  append_escaped(result, text, false);
  return result;
}

bool take_field(std::string_view& rest, ParsedField& field, std::string& why) {
  field.name.clear();
  field.value.clear();
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  std::size_t size = 0;
  while (size < rest.size() && is_name_byte(rest[size])) ++size;
  if (size == 0 || size == rest.size() || rest[size] != '=') {
    why = "a field is not of the form name=value";
    return false;
  }
  field.name = rest.substr(0, size);
  rest.remove_prefix(size + 1);
  if (!rest.empty() && rest.front() == '"') return take_quoted(rest, field.value, why);
  const std::size_t end = std::min(rest.find(' '), rest.size());
  field.value = rest.substr(0, end);
  rest.remove_prefix(end);
  if (stands_bare(field.value)) return true;
  why = "the value of " + field.name + " is empty or should be in quotes";
  return false;
}

std::string parameter_field_name(std::string_view parameter) {
  const bool clashes = is_reserved_field(parameter) || parameter.starts_with(parameter_prefix);
  return clashes ? std::string(parameter_prefix).append(parameter) : std::string(parameter);
}

bool is_reserved_field(std::string_view name) {
  return std::find(reserved_fields.begin(), reserved_fields.end(), name) != reserved_fields.end();
}

std::string_view parameter_of_field(std::string_view field_name) {
  if (field_name.starts_with(parameter_prefix)) field_name.remove_prefix(parameter_prefix.size());
  return field_name;
}

}  // namespace contextune::log
