#pragma once

#include <string>

namespace contextune::intercept {

/// Full path of the running program; what it was called, where the system does not tell.
[[nodiscard]] std::string program_name();

}  // namespace contextune::intercept
