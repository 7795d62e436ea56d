#pragma once

#include "cli/setup/run_setup.hpp"

namespace contextune::cli {

/// Ends a run before its program starts where it is known by then that it could not tune what was
/// asked for, or tell of it. Obstacles that depend on the GPU or on the program's launches are not
/// known by then.
/// @throws Error that says what cannot be used, and what to do
void require_possible(const RunSetup& setup);

}  // namespace contextune::cli
