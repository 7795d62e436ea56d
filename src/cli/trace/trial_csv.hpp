#pragma once

#include <cstdint>
#include <ostream>
#include <vector>

#include "log/run_report.hpp"

namespace contextune::cli {

/// Writes a table of all trials: a line with the names of the columns, then a row for each trial,
/// site by site as the logs have them. Cells are quoted as RFC 4180 says, where they have to be;
/// lines end in "\n". A cell is empty where there is nothing to say, and never spans lines: control
/// characters are written as the log has them ("\n").
/// @return rows, without the names
std::uint64_t write_trial_csv(const std::vector<const log::ProcessReport*>& processes,
                              std::ostream& out);

/// Whether there is a trial.
[[nodiscard]] bool has_trials(const std::vector<const log::ProcessReport*>& processes);

}  // namespace contextune::cli
