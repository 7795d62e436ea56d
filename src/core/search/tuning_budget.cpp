#include "core/search/tuning_budget.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace contextune {

void TuningBudget::reach_at_least(double now) {
  last_now_ = std::max(last_now_, now);
}

bool TuningBudget::begin(double now) {
  if (!std::isnan(first_now_)) return false;
  first_now_ = now;
  return true;
}

double TuningBudget::seconds(bool has_ended) const {
  if (std::isnan(first_now_)) return 0;
  return (has_ended ? ended_at_ : last_now_) - first_now_;
}

bool TuningBudget::is_spent(bool for_confirm) const {
  if (overran_) return true;
  if (options_.max_passes > 0) {
    const std::uint64_t kept =
        options_.confirm && !for_confirm
            ? static_cast<std::uint64_t>(2 * std::max(2, options_.confirm_min_pairs) + 1)
            : 0;
    if (passes_ + kept >= options_.max_passes) return true;
  }
  // A fifth of the time is kept for showing that it was worth it.
  const double share = options_.confirm && !for_confirm ? 0.8 : 1.0;
  return options_.max_time > 0 && !std::isnan(first_now_) &&
         last_now_ - first_now_ >= share * options_.max_time;
}

bool TuningBudget::is_newly_spent() {
  return is_spent(false) && !std::exchange(said_spent_, true);
}

bool TuningBudget::trials_cost_too_much() const {
  return options_.max_slowdown > 0 &&
         trials_cost_ > options_.max_slowdown * (last_now_ - first_now_) + options_.grace_seconds;
}

}  // namespace contextune
