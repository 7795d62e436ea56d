#include "intercept/tuner/probation.hpp"

#include <algorithm>
#include <utility>

#include "intercept/host/clock.hpp"

namespace contextune::intercept {

bool Probation::is_winner_in_use(SiteIndex site) const {
  return !stopped_ && prospects_.is_settled_unsurvived(site);
}

void Probation::note_winner(SiteIndex site) {
  if (site >= prospects_.num_sites() || !is_winner_in_use(site)) return;
  winners_.emplace_back(site, prospects_.site(site).settled());
  has_winners_.store(true, std::memory_order_relaxed);
  if (winners_.size() == 1) store_.probation_begins();
  in_flight_.add(site, prospects_.site(site).settled());
  since_ = now_seconds();
}

bool Probation::note_winners() {
  const Trials before = std::exchange(winners_, {});
  for (SiteIndex i = 0; i < prospects_.num_sites(); ++i)
    if (is_winner_in_use(i)) winners_.emplace_back(i, prospects_.site(i).settled());
  has_winners_.store(!winners_.empty(), std::memory_order_relaxed);
  if (winners_ == before) return false;
  if (winners_.empty()) store_.probation_ends();
  if (before.empty()) store_.probation_begins();
  return true;
}

void Probation::note(const Trials& tried) {
  // A run between entries has what is screened, and nothing else.
  Trials all = screened_.empty() ? winners_ : screened_;
  const auto add = [&](const Trials& trials) {
    for (const auto& trial : trials) {
      if (prospects_.survived(trial.first, trial.second)) continue;
      if (std::find(all.begin(), all.end(), trial) == all.end()) all.push_back(trial);
    }
  };
  add(tried);
  add(stuck_);
  if (in_flight_.set(all)) since_ = all.empty() ? 0 : now_seconds();
}

void Probation::entry_begins(double now) {
  if (begun_ != 0 && in_flight_.empty()) quiet_period_ = std::max(quiet_period_, now - begun_);
  begun_ = now;
}

std::optional<double> Probation::overdue_in(double timeout, double now) const {
  if (since_ == 0) return std::nullopt;
  return std::max(0.0, since_ + timeout + 2 * quiet_period_ - now);
}

}  // namespace contextune::intercept
