#pragma once

#include <string>
#include <vector>

#include "replay_log.hpp"

namespace replay_bench {

/// One tuning as seen from outside, and by its log.
struct Outcome {
  double seconds = 0;    ///< until the region was tuned
  std::string checksum;  ///< after the first visit
  std::string gpu;
  Tuning tuning;
};

/// All tunings of one mode.
struct ModeOutcomes {
  std::string mode;
  std::vector<Outcome> outcomes;
};

/// Prints the tables: each mode's time, passes and visits, what it chose, and what one pass of a
/// replay costs besides the region.
void report(const std::vector<ModeOutcomes>& modes, bool simulated);

}  // namespace replay_bench
