#pragma once

#include <string>

#include "cli/setup/environment.hpp"

namespace contextune::cli {

/// The folder of the store for programs with this environment; empty: nothing names one.
[[nodiscard]] std::string store_folder(const Environment& environment);

}  // namespace contextune::cli
