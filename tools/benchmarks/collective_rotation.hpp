#pragma once

#include <string>
#include <vector>

#include "collective_work.hpp"
#include "hand_tuner.hpp"

namespace collective_bench {

/// Of one quantity in several rounds.
struct Spread {
  double median = 0, least = 0, most = 0;
};
/// @param values at least one
[[nodiscard]] Spread spread_of(std::vector<double> values);

/// How often something is timed, and about for how long each time.
struct Blocks {
  int rounds;
  double us;
};
/// Microseconds a call on the slowest rank.
[[nodiscard]] Spread time_blocks(CollectiveWork& work, const Problem& problem, Blocks blocks);

/// What trying every config by hand found.
struct Rotation {
  int configs = 0;             ///< that were tried, without the default
  std::string default_cell;    ///< the cheapest in NCCL's table
  hand_tuner::Choice best;     ///< the default where nothing is faster
  Spread default_us, best_us;  ///< a call, on the slowest rank
  Spread gain;                 ///< the default's time as a multiple of the best's, in pairs
};

/// Tries every legal algorithm and protocol with several numbers of channels, each in alternation
/// with the default in a few blocks. What looks best is measured anew, in all of them, before one
/// of it is taken: the best of many is also the luckiest.
/// @throws std::runtime_error if NCCL does not ask the hand tuner
[[nodiscard]] Rotation rotate(CollectiveWork& work, const Problem& problem, Blocks blocks);

}  // namespace collective_bench
