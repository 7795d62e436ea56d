#pragma once

#include <cstdint>
#include <vector>

namespace contextune {

/// A config for each site that takes part.
using Assignment = std::vector<std::uint32_t>;

/// The region's time in one pass of an experiment.
struct RegionSample {
  double seconds = 0;           ///< NaN: none came; +inf: a config could not be launched
  std::uint64_t situation = 0;  ///< which sites were launched; only passes that agree on it compare
};

}  // namespace contextune
