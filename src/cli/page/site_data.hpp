#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>

#include "cli/page/region_of_job.hpp"
#include "cli/page/string_table.hpp"

namespace contextune::cli {

/// How many times one page holds. Sites beyond that have quantiles alone, or no times by rank.
struct TimeRoom {
  std::size_t samples = 250'000;
  std::size_t medians = 1'200'000;  ///< of ranks
};

/// The site for the page: its configs by number with the parameters that vary, quantiles of their
/// samples over all ranks, each rank's median, winners by rank.
[[nodiscard]] nlohmann::ordered_json site_data(const SiteOfJob& site, StringTable& strings,
                                               TimeRoom& room);

}  // namespace contextune::cli
