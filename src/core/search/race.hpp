#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/trials/region_sample.hpp"
#include "core/trials/statistics.hpp"

namespace contextune {

/// Noise known before the first sample.
struct NoisePrior {
  double relative = 0;
  std::size_t degrees = 0;  ///< samples' worth that it counts; 0: nothing is known
};

/// When a race is decided.
struct RaceLimits {
  /// The race ends when choosing the fastest arm now is expected to cost at most this share of the
  /// region against any other arm. Ties end as soon as they are known to be ties.
  double tolerance = 0.002;
  int max_rounds = 16;
  /// Not 0: a look at the samples takes as long as so many passes. Rounds that need no more than
  /// that together are run without one, and never fewer than four, and three times those before.
  std::size_t passes_at_once = 0;
};

/// Finds the fastest of a few arms (joint configs) by whole passes. Rounds go over all arms that
/// may still win, forwards and backwards in turn, so that drift and anything periodic hit all
/// alike. Arms that cannot win any more leave; the race ends as soon as going on is not worth it.
class Race {
 public:
  Race(std::size_t num_arms, const RaceLimits& limits, const NoisePrior& prior);

  /// The arms of the next passes, in order, of one round or several. Empty: decided.
  [[nodiscard]] const std::vector<std::size_t>& round() const { return round_; }

  /// Takes one sample for each of those passes.
  void complete(std::span<const RegionSample> samples);

  /// The fastest arm; the first where nothing was measured. Fewer samples than two rounds of an arm
  /// are believed too: the tolerance has judged them.
  [[nodiscard]] std::size_t best() const;

  /// Mean of an arm's times over the mean of arm 0's; NaN where either is unknown.
  [[nodiscard]] double relative_to_first(std::size_t arm) const;

 private:
  struct Arm {
    std::vector<RegionSample> samples;
    bool alive = true;
    std::size_t compared = 0;  ///< samples that say something about its level
    /// Relative to all samples of the same situation; NaN: unknown.
    double level = no_sample;
  };
  void weigh();
  void decide();
  void plan();

  RaceLimits limits_;
  NoisePrior prior_;
  std::vector<Arm> arms_;
  std::vector<std::size_t> round_;
  int rounds_ = 0;  ///< that were planned
  double noise_ = 0;
};

}  // namespace contextune
