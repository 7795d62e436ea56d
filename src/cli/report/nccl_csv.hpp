#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "log/run_report.hpp"

namespace contextune::cli {

/// The configs that collectives run with now, in the CSV of NCCL's example tuner plugin, which then
/// applies them without contextune. Winners of all ranks are listed, each once. A collective that
/// keeps its default is listed with NCCL's own choice, since that plugin gives one channel to calls
/// without a row. The plugin cannot tell datatypes and operators apart: where two of them differ,
/// the one that keeps the default counts.
/// @param rows set to the number of rows that are in effect
[[nodiscard]] std::string nccl_csv(const std::vector<log::ProcessReport>& processes,
                                   std::size_t& rows);

/// The same of sites, wherever they come from.
[[nodiscard]] std::string nccl_csv(const std::vector<const log::SiteReport*>& sites,
                                   std::size_t& rows);

/// Whether it is the name of a collective, in the words of a rank log.
[[nodiscard]] bool is_collective(std::string_view name);

}  // namespace contextune::cli
