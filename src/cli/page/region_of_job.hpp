#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "log/run_report.hpp"

namespace contextune::cli {

/// A site as the ranks of a job have it. Points into the processes.
struct SiteOfJob {
  std::string label;                            ///< short, and no other site of the region has it
  std::vector<const log::SiteReport*> by_rank;  ///< in the order of the job's ranks; null: none
};

/// A region as the ranks of a job have it.
struct RegionOfJob {
  std::string name;
  std::vector<const log::RegionReport*> by_rank;  ///< null: the rank has not entered it
  std::vector<SiteOfJob> sites;
  /// For each rank, where its sites stand among those of the job.
  std::vector<std::vector<std::size_t>> places;
};

/// Regions and their sites in the order in which the ranks found them.
[[nodiscard]] std::vector<RegionOfJob> regions_of(
    const std::map<int, const log::ProcessReport*>& ranks);

}  // namespace contextune::cli
