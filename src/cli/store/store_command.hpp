#pragma once

#include "cli/words/command_line.hpp"

namespace contextune::cli {

/// Looks at stored winners, or changes what is stored; returns the exit status.
[[nodiscard]] int store_command(const StoreRequest& request);

}  // namespace contextune::cli
