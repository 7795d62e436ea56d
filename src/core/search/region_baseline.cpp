#include "core/search/region_baseline.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/trials/statistics.hpp"

namespace contextune {
namespace {

constexpr std::size_t kept_defaults = 16;
constexpr std::size_t kept_steps = 256;

}  // namespace

void RegionBaseline::add(Measure measure, std::uint64_t situation,
                         std::span<const std::uint32_t> configs, double seconds) {
  const bool all_default =
      std::all_of(configs.begin(), configs.end(), [](std::uint32_t config) { return config == 0; });
  if (all_default) {
    auto& kept = defaults_[{measure, situation}];
    if (kept.size() < kept_defaults) kept.push_back(seconds);
  }
  const bool same =
      situation == last_situation_ && last_seconds_ > 0 &&
      std::equal(configs.begin(), configs.end(), last_configs_.begin(), last_configs_.end());
  if (same && steps_.size() < kept_steps) steps_.push_back(std::fabs(seconds / last_seconds_ - 1));
  last_configs_.assign(configs.begin(), configs.end());
  last_situation_ = situation;
  last_seconds_ = seconds;
}

double RegionBaseline::excess(Measure measure, std::uint64_t situation, double seconds) const {
  const auto found = defaults_.find({measure, situation});
  if (found == defaults_.end()) return 0;
  return std::max(0.0, seconds - median(found->second));
}

NoisePrior RegionBaseline::noise() const {
  if (steps_.size() < 4) return {};
  // A difference of two passes is sqrt(2) times as noisy as one.
  return {1.4826 * median(steps_) / std::numbers::sqrt2, std::min<std::size_t>(steps_.size(), 8)};
}

}  // namespace contextune
