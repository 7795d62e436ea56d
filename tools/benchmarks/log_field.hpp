#pragma once

#include <string>

namespace bench {

/// Value of `name=` in a line of a rank log; "" if it has none. No value that is asked for holds a
/// blank.
[[nodiscard]] std::string field(const std::string& line, const std::string& name);

/// The same as a number; 0 if there is none.
[[nodiscard]] double number(const std::string& line, const std::string& name);

}  // namespace bench
