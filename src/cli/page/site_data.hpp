#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>

#include "cli/page/region_of_job.hpp"
#include "cli/page/string_table.hpp"

namespace contextune::cli {

/// How many samples one page holds; sites beyond that have quantiles alone.
struct SampleRoom {
  std::size_t left = 250'000;
};

/// The site for the page: its configs by number with the parameters that vary, quantiles of their
/// samples over all ranks, each rank's median, winners by rank.
[[nodiscard]] nlohmann::ordered_json site_data(const SiteOfJob& site, StringTable& strings,
                                               SampleRoom& room);

}  // namespace contextune::cli
