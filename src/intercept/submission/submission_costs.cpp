#include "intercept/submission/submission_costs.hpp"

#include <utility>

namespace contextune::intercept {
namespace {

/// The rest is for blocks that show what chaining gains.
constexpr double share_for_loads = 0.9;

}  // namespace

double SubmissionCosts::seconds_since_first() const noexcept {
  return first_ns() == 0 ? 0 : 1e-9 * static_cast<double>(monotonic_ns() - first_ns());
}

void SubmissionCosts::charge(SubmissionSearch& search, const SubmissionInUse& in_use) {
  search.elapsed(seconds_since_first());
  const double all = in_use.seconds_taken() + 1e-9 * static_cast<double>(looks_ns_);
  search.spend(all - std::exchange(charged_, all));
}

double SubmissionCosts::left_for_loads(SubmissionSearch* search, const SubmissionInUse& in_use,
                                       bool pays) {
  SubmissionBudget without_search(limits_.max_slowdown, limits_.grace_seconds);
  if (search != nullptr) {
    charge(*search, in_use);
  } else {
    without_search.elapsed(seconds_since_first());
    without_search.spend(in_use.loads().totals().seconds + in_use.graphs().totals().seconds);
  }
  const SubmissionBudget& budget = search != nullptr ? search->budget() : without_search;
  return (pays ? 20 : share_for_loads) * budget.allowance() - budget.spent();
}

}  // namespace contextune::intercept
