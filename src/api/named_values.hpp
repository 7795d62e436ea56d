#pragma once

#include <string_view>

#include <contextune/config.hpp>
#include <contextune/key.hpp>

namespace contextune::api {

/// The inverse of Config::to_string: "block=256 per_sm=4", or "default".
/// @throws Error if it cannot be read, or names a parameter twice
[[nodiscard]] Config parse_config(std::string_view text);

/// The inverse of Key::to_string; fractions and truth values become text.
/// @throws Error if it cannot be read
[[nodiscard]] Key parse_key(std::string_view text);

}  // namespace contextune::api
