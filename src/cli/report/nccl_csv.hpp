#pragma once

#include <string>
#include <string_view>
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

/// The same of sites, wherever they come from.
[[nodiscard]] std::string nccl_csv(const std::vector<const log::SiteReport*>& sites,
                                   std::size_t& rows);

/// Whether it is the name of a collective, in the words of a rank log.
[[nodiscard]] bool is_collective(std::string_view name);

}  // namespace contextune::cli
