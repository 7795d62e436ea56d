#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "cli/trace/host_clocks.hpp"
#include "log/run_report.hpp"

namespace contextune::cli {

/// The contents of a trace that was written.
struct TraceContents {
  std::uint64_t num_events = 0;
  std::vector<HostClocks::Difference> clocks;  ///< that were put right, or could not be
};

/// Whether the logs tell of anything that a trace shows.
[[nodiscard]] bool has_trace(const std::vector<const log::ProcessReport*>& processes);

/// Writes how regions were tuned as Chrome's JSON trace events, which ui.perfetto.dev opens: a
/// process for each rank with a track for the stages of each region, its replayed visits, each site
/// with its trials, and what the ranks agreed on, with an arrow from each rank's question to the
/// verdict.
[[nodiscard]] TraceContents write_perfetto(const std::vector<const log::ProcessReport*>& processes,
                                           std::ostream& out);

}  // namespace contextune::cli
