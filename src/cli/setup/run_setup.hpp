#pragma once

#include <string>

#include <contextune/options.hpp>

#include "cli/setup/environment.hpp"
#include "cli/words/command_line.hpp"

namespace contextune::cli {

/// The settings that a run is started with.
struct RunSetup {
  Options options;          ///< flag over variable over default
  std::string run;          ///< id of the run
  std::string log_folder;   ///< absolute
  Environment environment;  ///< of the program
};

/// Makes variables of the flags, and puts the frontend in. Paths are made absolute, since the
/// program may go to another folder before it starts CUDA.
/// @throws Error that says which flag or which file cannot be used
[[nodiscard]] RunSetup prepare_run(const RunRequest& request);

/// The options as the environment has them; a variable that makes no sense is left at its default,
/// as the core does, and reported in `faults`, a sentence each, separated by newlines.
[[nodiscard]] Options options_of_environment(const Environment& environment, std::string& faults);

/// Why the folder cannot be written, or could not be made: "Permission denied"; empty if it can.
[[nodiscard]] std::string why_not_writable(const std::string& folder);

}  // namespace contextune::cli
