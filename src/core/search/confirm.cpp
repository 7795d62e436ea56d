#include "core/search/confirm.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <numeric>

#include "core/trials/statistics.hpp"

namespace contextune {
Comparison::Comparison(const ConfirmLimits& limits) : limits_(limits) {
  limits_.min_pairs = std::max(2, limits_.min_pairs);
  limits_.max_pairs = std::max(limits_.min_pairs, limits_.max_pairs);
  if (limits_.pairs_to_give_up == 0) limits_.pairs_to_give_up = 2 * limits_.min_pairs;
  target_ = limits_.min_pairs;
  for (int pairs = target_; pairs < limits_.max_pairs; pairs *= 2) ++num_looks_;
  plan();
}

void Comparison::plan() {
  batch_.clear();
  if (verdict_ != Verdict::Open) return;
  for (int pair = planned_; pair < target_; ++pair) {
    const bool winners_first = pair % 2 == 1;
    batch_.push_back(winners_first);
    batch_.push_back(!winners_first);
  }
  planned_ = target_;
}

void Comparison::complete(std::span<const RegionSample> samples) {
  // Pairs are made among passes in which the same sites were launched.
  std::map<std::uint64_t, std::deque<double>> waiting[2];
  for (std::size_t i = 0; i < batch_.size() && i < samples.size(); ++i) {
    const RegionSample& sample = samples[i];
    const bool winners = batch_[i];
    if (std::isinf(sample.seconds) && winners) {
      verdict_ = Verdict::NotShown;
      batch_.clear();
      return;
    }
    if (!std::isfinite(sample.seconds)) continue;
    auto& others = waiting[winners ? 0 : 1][sample.situation];
    if (others.empty()) {
      waiting[winners ? 1 : 0][sample.situation].push_back(sample.seconds);
      continue;
    }
    const double first = others.front();
    others.pop_front();
    before_.push_back(winners ? first : sample.seconds);
    after_.push_back(winners ? sample.seconds : first);
    gains_.push_back(1 - after_.back() / before_.back());
  }
  look();
  plan();
}

void Comparison::look() {
  const double tail = limits_.tail / num_looks_;
  const Bound bound = limits_.without_order
                          ? paired_bound(without_order(gains_), tail, limits_.known, 1)
                          : paired_bound(gains_, tail, limits_.known);
  gain_ = bound.mean;
  bound_ = bound.low;
  scatter_ = bound.scatter;
  const bool shown = bound.low > limits_.least_gain;
  const bool last = target_ >= limits_.max_pairs;
  if (shown && (last || seconds() >= limits_.min_seconds)) {
    verdict_ = Verdict::Faster;
  } else if (last || (!shown && planned_ >= limits_.pairs_to_give_up && hopeless(bound))) {
    verdict_ = Verdict::NotShown;
  } else {
    target_ = std::min(2 * target_, limits_.max_pairs);
  }
}

bool Comparison::hopeless(const Bound& bound) const {
  const auto most = static_cast<std::size_t>(limits_.max_pairs);
  const double shrink = std::sqrt(static_cast<double>(gains_.size()) / static_cast<double>(most));
  // Even a gain that is one standard error larger than it seems would not be shown in the end.
  const double in_the_end = bound.error * shrink * t_quantile(limits_.tail / num_looks_, most - 1);
  return !(bound.mean + bound.error > limits_.least_gain + in_the_end);
}

double Comparison::seconds() const {
  return std::accumulate(before_.begin(), before_.end(), 0.0) +
         std::accumulate(after_.begin(), after_.end(), 0.0);
}

Scatter Comparison::scatter() const {
  // A pass that takes half as long scatters half as much, beside one that does not.
  const double ratio = 1 - gain_;
  return {ratio > 0 && ratio < 1 ? scatter_.deviation / ratio : scatter_.deviation,
          scatter_.degrees};
}

double Comparison::before() const {
  return median(before_);
}
double Comparison::after() const {
  return median(after_);
}

}  // namespace contextune
