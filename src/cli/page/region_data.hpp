#pragma once

#include <nlohmann/json_fwd.hpp>

#include "cli/page/pass_data.hpp"
#include "cli/page/region_of_job.hpp"
#include "cli/page/site_data.hpp"
#include "cli/page/string_table.hpp"

namespace contextune::cli {

/// How much of what grows with ranks and configs one page still takes.
struct PageRoom {
  CellRoom cells;
  TimeRoom times;
};

/// A region for the page: what became of it, how its stages went, its sites and iteration tables.
/// @param processes in the order of the job's ranks
[[nodiscard]] nlohmann::ordered_json region_data(
    const RegionOfJob& region, const std::vector<const log::ProcessReport*>& processes,
    StringTable& strings, PageRoom& room);

}  // namespace contextune::cli
