#pragma once

#include "cli/words/command_line.hpp"

namespace contextune::cli {

/// Prints what will work here and what will not, and why; returns the exit status.
[[nodiscard]] int doctor_command(const DoctorRequest& request);

}  // namespace contextune::cli
