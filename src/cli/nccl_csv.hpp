#pragma once

#include <string>
#include <vector>

#include "log/run_report.hpp"

namespace contextune::cli {

/// What collectives run now, in the CSV of NCCL's example tuner plugin, which then does it without
/// contextune. Winners of all ranks, each once; where a collective keeps its default, what NCCL's
/// own choice was, since that plugin gives one channel to what it finds no row for. It cannot tell
/// datatypes and operators apart: where two of them differ, the one that keeps the default counts.
/// @param rows set to the number of rows that are in effect
[[nodiscard]] std::string nccl_csv(const std::vector<log::ProcessReport>& processes,
                                   std::size_t& rows);

}  // namespace contextune::cli
