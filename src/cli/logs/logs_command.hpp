#pragma once

#include "cli/words/command_line.hpp"

namespace contextune::cli {

/// Prints what rank logs hold; returns the exit status.
[[nodiscard]] int logs_command(const LogsRequest& request);

}  // namespace contextune::cli
