#include "intercept/tuner/probation.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "intercept/host/clock.hpp"

namespace contextune::intercept {

void Probation::add_site(const Site& site, std::size_t num_configs,
                         std::optional<StoredWinner> stored, Suspicions suspicions) {
  prospects_.push_back(
      {&site, std::move(stored), std::move(suspicions), std::vector<bool>(num_configs, false)});
}

bool Probation::may_try(SiteIndex site, std::uint32_t config) const {
  if (site >= prospects_.size()) return true;
  const Prospect& known = prospects_[site];
  const auto& blamed = known.suspicions.blamed;
  if (std::find(blamed.begin(), blamed.end(), config) != blamed.end()) return false;
  return !known.stored || known.stored->has_to_try(config);
}

bool Probation::has_to_time(SiteIndex site, std::uint32_t config) const {
  if (!may_try(site, config)) return false;
  if (site >= prospects_.size()) return true;
  const auto& stored = prospects_[site].stored;
  return !stored || stored->config != config || stored->needs_confirm;
}

bool Probation::was_right(SiteIndex site, std::uint32_t config) const {
  if (site >= prospects_.size()) return true;
  const auto& stored = prospects_[site].stored;
  return results_.is_compared(site, config) ||
         (stored && stored->config == config && stored->is_compared);
}

std::vector<std::uint32_t> Probation::suspects(SiteIndex site) const {
  if (site >= prospects_.size() || prospects_[site].site->pinned) return {};
  return prospects_[site].suspicions.suspects;
}

bool Probation::has_suspects() const {
  return std::any_of(prospects_.begin(), prospects_.end(), [](const Prospect& known) {
    if (known.site->pinned) return false;
    const auto& suspects = known.suspicions.suspects;
    return std::any_of(suspects.begin(), suspects.end(), [&](std::uint32_t config) {
      const bool is_tried = !known.stored || known.stored->has_to_try(config);
      return is_tried && !known.survived[config];
    });
  });
}

bool Probation::is_winner_in_use(SiteIndex site) const {
  const Prospect& known = prospects_[site];
  const std::uint32_t config = known.site->settled();
  return !stopped_ && config != 0 && !known.site->pinned && config < known.survived.size() &&
         !known.survived[config];
}

void Probation::note_winner(SiteIndex site) {
  if (site >= prospects_.size() || !is_winner_in_use(site)) return;
  winners_.emplace_back(site, prospects_[site].site->settled());
  has_winners_.store(true, std::memory_order_relaxed);
  if (winners_.size() == 1) store_.probation_begins();
  results_.add_in_flight(site, prospects_[site].site->settled());
  since_ = now_seconds();
}

bool Probation::note_winners() {
  const Trials before = std::exchange(winners_, {});
  for (SiteIndex i = 0; i < prospects_.size(); ++i)
    if (is_winner_in_use(i)) winners_.emplace_back(i, prospects_[i].site->settled());
  has_winners_.store(!winners_.empty(), std::memory_order_relaxed);
  if (winners_ == before) return false;
  if (winners_.empty()) store_.probation_ends();
  if (before.empty()) store_.probation_begins();
  return true;
}

void Probation::survive(const Trials& trials) {
  for (const auto& [site, config] : trials) prospects_[site].survived[config] = true;
}

void Probation::note(const Trials& tried) {
  // A run between entries has what is screened, and nothing else.
  Trials all = screened_.empty() ? winners_ : screened_;
  const auto add = [&](const Trials& trials) {
    for (const auto& trial : trials) {
      if (survived(trial.first, trial.second)) continue;
      if (std::find(all.begin(), all.end(), trial) == all.end()) all.push_back(trial);
    }
  };
  add(tried);
  add(stuck_);
  if (results_.set_in_flight(all)) since_ = all.empty() ? 0 : now_seconds();
}

void Probation::entry_begins(double now) {
  if (begun_ != 0 && results_.in_flight().empty())
    quiet_period_ = std::max(quiet_period_, now - begun_);
  begun_ = now;
}

std::optional<double> Probation::overdue_in(double timeout, double now) const {
  if (since_ == 0) return std::nullopt;
  return std::max(0.0, since_ + timeout + 2 * quiet_period_ - now);
}

bool Probation::begin_probe(PassId pass, bool is_all) {
  const bool expects = !has_probed_ && results_.store_knows();
  if (probe_ || (winners_.empty() && !expects)) return false;
  has_probed_ = true;
  probe_ = Probe{pass, is_all, true, {}};
  return true;
}

bool Probation::end_probe(bool has_span) {
  if (!is_probing()) return false;
  const bool is_all = probe_->is_all;
  probe_->open = false;
  probe_->used = winners_;
  if (!has_span) probe_.reset();
  return is_all;
}

bool Probation::close_probe(PassId pass, double seconds, Trials& survived) {
  if (!probe_ || probe_->pass != pass) return false;
  survived = std::isfinite(seconds) ? std::move(probe_->used) : Trials{};
  probe_.reset();
  return true;
}

}  // namespace contextune::intercept
