#pragma once

#include <map>
#include <string>
#include <vector>

#include "log/run_report.hpp"

namespace contextune::cli {

/// The ranks that ran as one job, as far as their logs tell. Points into the processes that it was
/// made from.
struct RankJob {
  std::vector<std::string> runs;  ///< one, or one a rank where a launcher started each by itself
  /// One process a rank: of several, the last that tuned something.
  std::map<int, const log::ProcessReport*> ranks;
};

/// In the order of their first lines. A job is what has one run id, or else ranks of one program
/// that ran at the same time and, if they agreed on anything, on the same.
[[nodiscard]] std::vector<RankJob> jobs_of(const std::vector<log::ProcessReport>& processes);

}  // namespace contextune::cli
