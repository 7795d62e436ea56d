#pragma once

#include "cli/run/reporter.hpp"
#include "cli/setup/run_setup.hpp"
#include "cli/words/command_line.hpp"

namespace contextune::cli {

/// Runs the program bare and tuned, `request.prove` times each in turns, and tells whether it did
/// the same and how much faster it was.
/// @return the status of the first bare run, as waitpid tells it; that of a failure of ours where
/// the program did not do the same each time
[[nodiscard]] int prove(const RunRequest& request, RunSetup setup, Reporter& reporter);

}  // namespace contextune::cli
