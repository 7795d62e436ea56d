#pragma once

#include <map>
#include <string>
#include <vector>

#include "log/run_report.hpp"

namespace contextune::cli {

/// In what the ranks of a job differ though they should not, a sentence each, naming ranks; empty
/// if in nothing. Times are no difference.
[[nodiscard]] std::vector<std::string> differences_of(
    const std::map<int, const log::ProcessReport*>& ranks);

/// "no line of ranks 1, 2": of ranks that their job must have. Empty: there are lines of all.
[[nodiscard]] std::string missing_ranks(const std::map<int, const log::ProcessReport*>& ranks);

}  // namespace contextune::cli
