#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "cli/page/region_of_job.hpp"
#include "cli/page/string_table.hpp"

namespace contextune::cli {

/// How many cells of iteration tables one page makes. Ranks that ran the same share a table.
struct CellRoom {
  std::uint64_t left = 1'500'000;
};

/// The iteration tables of a region, a list of {ranks, passes, sites, cells}: for each rank, by its
/// place in the job, the config that every site ran in every pass. A rank beyond the room has none.
[[nodiscard]] nlohmann::ordered_json pass_data(const RegionOfJob& region, StringTable& strings,
                                               CellRoom& room);

}  // namespace contextune::cli
