#include "core/search/race.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <set>

#include "core/trials/statistics.hpp"

namespace contextune {
namespace {

/// Noise is never believed to be below this: a few equal samples prove little.
constexpr double least_noise = 0.001;

/// The arm that was chosen before the race does not lose it on fewer: a single interrupted pass
/// would outweigh all that is known of it.
constexpr std::size_t least_samples_of_first = 3;

/// For looks that are dear. Arms that one look leaves undecided are harder to tell apart. Over 1500
/// drawn landscapes of three sites with noise of 5 %, refinements take half the looks of those at
/// two rounds and twice as many, and as many passes.
constexpr int least_rounds_at_once = 4;
constexpr int look_growth = 4;

/// The average loss from not choosing an arm that seems slower by `behind`, where that difference
/// is known to within `error`.
double expected_loss(double behind, double error) {
  if (error <= 0) return 0;
  const double z = behind / error;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  return error * (density - z * std::erfc(z / std::sqrt(2.0)) / 2);
}

}  // namespace

Race::Race(std::size_t num_arms, const RaceLimits& limits, const NoisePrior& prior)
    : limits_(limits), prior_(prior), arms_(num_arms) {
  plan();
}

void Race::complete(std::span<const RegionSample> samples) {
  for (std::size_t i = 0; i < round_.size() && i < samples.size(); ++i) {
    Arm& arm = arms_[round_[i]];
    if (std::isinf(samples[i].seconds)) {
      arm.alive = false;
    } else if (!std::isnan(samples[i].seconds)) {
      arm.samples.push_back(samples[i]);
    }
  }
  weigh();
  decide();
  plan();
}

void Race::weigh() {
  struct Situation {
    std::vector<double> seconds;
    std::set<std::size_t> arms;
  };
  std::map<std::uint64_t, Situation> situations;
  for (std::size_t i = 0; i < arms_.size(); ++i) {
    for (const RegionSample& sample : arms_[i].samples) {
      situations[sample.situation].seconds.push_back(sample.seconds);
      situations[sample.situation].arms.insert(i);
    }
  }
  // A situation that only one arm has been in compares with nothing.
  std::erase_if(situations, [](const auto& entry) { return entry.second.arms.size() < 2; });
  std::map<std::uint64_t, double> centres;
  for (const auto& [number, situation] : situations) centres[number] = median(situation.seconds);

  std::vector<std::vector<double>> ratios(arms_.size());
  PooledNoise noise;
  for (std::size_t i = 0; i < arms_.size(); ++i) {
    for (const RegionSample& sample : arms_[i].samples) {
      const auto centre = centres.find(sample.situation);
      if (centre != centres.end()) ratios[i].push_back(sample.seconds / centre->second);
    }
    noise.add(ratios[i]);
  }
  const auto known = static_cast<double>(noise.degrees());
  const auto before = static_cast<double>(prior_.degrees);
  noise_ = known + before > 0 ? std::sqrt((known * noise.relative() * noise.relative() +
                                           before * prior_.relative * prior_.relative) /
                                          (known + before))
                              : std::numeric_limits<double>::infinity();
  noise_ = std::max(noise_, least_noise);
  for (std::size_t i = 0; i < arms_.size(); ++i) {
    if (ratios[i].empty()) {
      arms_[i].level = no_sample;
      continue;
    }
    // An interrupted pass is pulled in; a mean uses what is left of it better than a median.
    const double centre = median(ratios[i]);
    for (double& ratio : ratios[i])
      ratio = std::clamp(ratio, centre * (1 - 3 * noise_), centre * (1 + 3 * noise_));
    arms_[i].level = mean(ratios[i]);
    arms_[i].compared = ratios[i].size();
  }
}

void Race::decide() {
  const std::size_t first = best();
  const Arm& leader = arms_[first];
  if (!leader.alive || std::isnan(leader.level)) return;
  double worst = 0;
  for (std::size_t i = 0; i < arms_.size(); ++i) {
    Arm& arm = arms_[i];
    if (i == first || !arm.alive) continue;
    if (std::isnan(arm.level) || (i == 0 && arm.compared < least_samples_of_first)) {
      worst = std::numeric_limits<double>::infinity();
      continue;
    }
    const double error =
        noise_ * leader.level *
        std::sqrt(1 / static_cast<double>(arm.compared) + 1 / static_cast<double>(leader.compared));
    const double loss = expected_loss(arm.level - leader.level, error);
    if (std::isfinite(error) &&
        loss < limits_.tolerance / (2 * static_cast<double>(arms_.size()))) {
      arm.alive = false;
    } else {
      worst = std::max(worst, loss);
    }
  }
  if (worst < limits_.tolerance) {
    for (std::size_t i = 0; i < arms_.size(); ++i) arms_[i].alive = i == first && leader.alive;
  }
}

void Race::plan() {
  round_.clear();
  std::vector<std::size_t> alive;
  for (std::size_t i = 0; i < arms_.size(); ++i)
    if (arms_[i].alive) alive.push_back(i);
  if (alive.size() < 2) return;
  const int next_look =
      limits_.passes_at_once > 0 ? std::max(least_rounds_at_once, look_growth * rounds_) : 0;
  do {
    if (rounds_ >= limits_.max_rounds) return;
    if (rounds_ % 2 == 0) {
      round_.insert(round_.end(), alive.begin(), alive.end());
    } else {
      round_.insert(round_.end(), alive.rbegin(), alive.rend());
    }
    ++rounds_;
  } while (rounds_ < next_look || round_.size() + alive.size() <= limits_.passes_at_once);
}

std::size_t Race::best() const {
  std::size_t best = 0;
  double level = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < arms_.size(); ++i) {
    const Arm& arm = arms_[i];
    if (arm.alive && arm.level < level) {
      best = i;
      level = arm.level;
    }
  }
  return best;
}

double Race::relative_to_first(std::size_t arm) const {
  return arms_[arm].level / arms_[0].level;
}

}  // namespace contextune
