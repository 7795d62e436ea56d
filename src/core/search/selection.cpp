#include "core/search/selection.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/trials/statistics.hpp"

namespace contextune {

std::vector<double> dense_costs(std::span<const Trial> trials, Selection selection) {
  std::vector<double> costs(trials.size(), std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const std::vector<double> samples = trials[i].measured();
    if (!trials[i].given_up() && !samples.empty()) costs[i] = cost_of(samples, selection);
  }
  return costs;
}

double measured_spread(std::span<const Trial> trials, std::uint32_t config) {
  const std::vector<double> base = trials[0].measured();
  const std::vector<double> samples = trials[config].measured();
  if (base.size() < 2 || samples.size() < 2) return 0;
  PooledNoise noise;
  noise.add(base);
  noise.add(samples);
  return noise.relative() *
         std::sqrt(1 / static_cast<double>(base.size()) + 1 / static_cast<double>(samples.size()));
}

SelectedConfig select_winner(std::span<const double> costs, std::span<const double> spreads,
                             double margin) {
  if (costs.size() == 1) return {0, WinnerReason::Only};
  // Without the default's cost there is nothing to be faster than.
  if (!std::isfinite(costs[0])) return {0, WinnerReason::NoSamples};
  std::uint32_t best = 0;
  bool alone = true;
  for (std::uint32_t i = 1; i < costs.size(); ++i) {
    if (!std::isfinite(costs[i])) continue;
    alone = false;
    if (costs[i] < costs[best]) best = i;
  }
  if (alone) return {0, WinnerReason::Failed};
  if (best == 0) return {0, WinnerReason::Fastest};
  const double needed = margin > 0 ? std::max(margin, spreads[best]) : 0;
  if (costs[best] < costs[0] * (1 - needed)) return {best, WinnerReason::Fastest};
  return {0, WinnerReason::Margin};
}

}  // namespace contextune
