#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace contextune::log {

/// A value longer than this is cut when written; what was cut off is marked by "...".
inline constexpr std::size_t max_value_bytes = 4096;

/// Appends `name=value`, after a space unless the line is empty. The value stands bare when it is
/// one plain word, else in quotes with \" \\ \n \r \t, \u00e9 for control characters and \xff for
/// bytes that are not UTF-8. Bytes of the name outside [A-Za-z0-9_.-] become '_'.
void append_field(std::string& line, std::string_view name, std::string_view value);

/// `text` with everything that a terminal could take for a command escaped as append_field does.
[[nodiscard]] std::string printable(std::string_view text);

/// A `name=value` of a line.
struct ParsedField {
  std::string name;
  std::string value;
};

/// Takes the next field off the front of `rest`. False: `rest` does not go on with a field, and
/// `why` says so.
[[nodiscard]] bool take_field(std::string_view& rest, ParsedField& field, std::string& why);

/// A config's parameter as a field name: one that would be taken for a field of the line itself
/// gets the prefix "param.".
[[nodiscard]] std::string parameter_field_name(std::string_view parameter);

/// Whether `name` is one of the fields that lines have for themselves.
[[nodiscard]] bool is_reserved_field(std::string_view name);

/// The reverse of parameter_field_name.
[[nodiscard]] std::string_view parameter_of_field(std::string_view field_name);

}  // namespace contextune::log
