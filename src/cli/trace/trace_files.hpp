#pragma once

#include <string>
#include <vector>

#include "log/run_report.hpp"

namespace contextune::cli {

/// Writes a trace of those processes, as write_perfetto says; "-" is standard output.
/// @return what it wrote, and what became of clocks, in lines
/// @throws Error that names the file, if it cannot be written or would be empty
[[nodiscard]] std::string write_perfetto_file(
    const std::vector<const log::ProcessReport*>& processes, const std::string& path);

/// The same of the table of all trials, as write_trial_csv says.
[[nodiscard]] std::string write_trial_file(const std::vector<const log::ProcessReport*>& processes,
                                           const std::string& path);

}  // namespace contextune::cli
