#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include <contextune/export.hpp>

namespace contextune {

/// The value of one parameter.
using Value = std::variant<std::int64_t, double, bool, std::string>;

/// "256", "0.5", "true", or the text itself; in double quotes where it holds anything that would
/// end it in "name=value name=value".
[[nodiscard]] CONTEXTUNE_EXPORT std::string to_string(const Value& value);

/// The inverse of to_string: a whole number, a number, true or false, else text.
[[nodiscard]] CONTEXTUNE_EXPORT Value parse_value(const std::string& text);

}  // namespace contextune
