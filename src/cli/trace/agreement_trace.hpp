#pragma once

#include <span>

#include "cli/trace/process_trace.hpp"

namespace contextune::cli {

/// Writes what ranks decided together: on each rank a slice from its question to the verdict, and
/// the verdict on the rank that is first in the group, with an arrow from every rank's question.
/// @param processes of any runs and groups
void write_agreements(TraceEvents& events, std::span<ProcessTrace> processes);

}  // namespace contextune::cli
