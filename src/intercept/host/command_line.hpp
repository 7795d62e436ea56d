#pragma once

#include <string>

namespace contextune::intercept {

/// How the running program was started, as a shell would read it; empty where the system does not
/// tell. A very long one is cut.
[[nodiscard]] std::string command_line();

/// Options that were given as variables, by their flags: "n-repeat=2 region=auto". No secret is one
/// of them.
[[nodiscard]] std::string given_options();

}  // namespace contextune::intercept
