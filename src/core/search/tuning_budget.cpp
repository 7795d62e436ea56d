#include "core/search/tuning_budget.hpp"

#include <algorithm>
#include <utility>

namespace contextune {

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
  return options_.max_time > 0 && clock_.has_begun() &&
         clock_.elapsed() >= share * options_.max_time;
}

bool TuningBudget::is_newly_spent() {
  return is_spent(false) && !std::exchange(said_spent_, true);
}

bool TuningBudget::trials_cost_too_much() const {
  return options_.max_slowdown > 0 &&
         trials_cost_ > options_.max_slowdown * clock_.elapsed() + options_.grace_seconds;
}

}  // namespace contextune
