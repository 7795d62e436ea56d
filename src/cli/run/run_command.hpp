#pragma once

#include "cli/words/command_line.hpp"

namespace contextune::cli {

/// Runs a program with contextune in it and ends this process as the program ended; returns an exit
/// status only if the program could not be started.
[[nodiscard]] int run_command(const RunRequest& request);

}  // namespace contextune::cli
