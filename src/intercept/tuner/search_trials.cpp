// What is in flight, for the journal: it may be the last thing that this process tries.
#include <algorithm>
#include <mutex>

#include "intercept/host/clock.hpp"
#include "intercept/tuner/search.hpp"

namespace contextune::intercept {

void Search::note_tried() {
  const auto winners = tuning_->winners();
  const auto& configs = open_->configs();
  const std::size_t known = std::min({configs.size(), winners.size(), prospects_.size()});
  for (SiteIndex i = 0; open_->counted && i < known; ++i) {
    const std::uint32_t config = configs[i];
    if (config != 0 && config != winners[i] && !prospects_[i].survived[config])
      open_->tried.emplace_back(i, config);
  }
  note_in_flight();
}

void Search::note_survived(const Trials& trials) {
  for (const auto& [site, config] : trials) prospects_[site].survived[config] = true;
  note_used();
}

void Search::note_in_flight() {
  // A run between entries has what is screened, and nothing else.
  Trials all = screened_.empty() ? used_ : screened_;
  const auto add_one = [&](const Trials::value_type& trial) {
    if (std::find(all.begin(), all.end(), trial) == all.end()) all.push_back(trial);
  };
  const auto add = [&](const PassRecord& record) {
    for (const auto& trial : record.tried)
      if (!prospects_[trial.first].survived[trial.second]) add_one(trial);
  };
  if (!stopped_ && !tuning_->finished()) {
    for (const PassRecord& record : pending_) add(record);
    if (open_ != nullptr) add(*open_);
  }
  for (const auto& trial : stuck_)
    if (!prospects_[trial.first].survived[trial.second]) add_one(trial);
  if (!results_.set_in_flight(all)) return;
  in_flight_since_ = all.empty() ? 0 : now_seconds();
}

std::optional<double> Search::overdue_in(double timeout, double now) const {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return timeout;  // it is at work
  if (in_flight_since_ == 0) return std::nullopt;
  return std::max(0.0, in_flight_since_ + timeout + 2 * quiet_period_ - now);
}

void Search::hangs() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  drain(false, now_seconds());  // what has come meanwhile
  if (in_flight_since_ == 0) return;
  in_flight_since_ = 0;
  keep_so_far(now_seconds(), true);
  log_.fallback(FallbackReason::TrialTimeout, region_, {},
                "The GPU is not through with a trial after trial_timeout, and only the end of its "
                "process ends a kernel. " +
                    store_.journal().hung());
}

void Search::overrun() {
  drain(false, now_seconds());
  keep_so_far(now_seconds(), true);
  stuck_ = results_.in_flight();
  const std::string next = store_.journal().hung();
  pending_.clear();
  tuning_->overrun(now_seconds());
  if (!next.empty()) log_.fallback(FallbackReason::TrialTimeout, region_, {}, next);
  note_in_flight();
  in_flight_since_ = 0;
}

bool Search::may_try(const Site& site, std::uint32_t config) const {
  const std::lock_guard lock(mutex_);
  if (site.index >= prospects_.size()) return true;
  const Prospect& known = prospects_[site.index];
  const auto& blamed = known.suspicions.blamed;
  if (std::find(blamed.begin(), blamed.end(), config) != blamed.end()) return false;
  return !known.stored || known.stored->has_to_try(config);
}

bool Search::has_to_time(const Site& site, std::uint32_t config) const {
  if (!may_try(site, config)) return false;
  const std::lock_guard lock(mutex_);
  if (site.index >= prospects_.size()) return true;
  const auto& stored = prospects_[site.index].stored;
  return !stored || stored->config != config || stored->needs_confirm;
}

std::vector<std::uint32_t> Search::suspects(const Site& site) const {
  const std::lock_guard lock(mutex_);
  if (site.index >= prospects_.size() || site.pinned) return {};
  return prospects_[site.index].suspicions.suspects;
}

bool Search::has_suspects() const {
  const std::lock_guard lock(mutex_);
  if (stopped_ || finished()) return false;
  for (std::size_t i = 0; i < prospects_.size(); ++i) {
    const Prospect& known = prospects_[i];
    for (const std::uint32_t config : known.suspicions.suspects) {
      const bool is_tried = !known.stored || known.stored->has_to_try(config);
      if (is_tried && !known.survived[config] && !sites_[i]->pinned) return true;
    }
  }
  return false;
}

bool Search::awaits_trials(double now) {
  const std::lock_guard lock(mutex_);
  if (results_.in_flight().empty()) return false;
  measurement_.poll(false);
  drain(false, now);
  note_in_flight();
  return !results_.in_flight().empty();
}

void Search::were_right(const std::vector<std::pair<const Site*, std::uint32_t>>& trials) {
  const std::lock_guard lock(mutex_);
  for (const auto& [site, config] : trials)
    if (site->index != no_site) results_.note_compared(site->index, config);
}

bool Search::was_right(const Site& site, std::uint32_t config) const {
  const std::lock_guard lock(mutex_);
  if (site.index >= prospects_.size()) return true;
  const auto& stored = prospects_[site.index].stored;
  return results_.is_compared(site.index, config) ||
         (stored && stored->config == config && stored->is_compared);
}

void Search::leave_uncompared(const Site& site, std::uint32_t config, const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (stopped_ || site.index == no_site) return;
  results_.leave_out(site.index, config);
  tuning_->reject_config(site.index, config, text, Rejection::NotCompared);
  settle_all();
  after_change();
}

void Search::begin_screening(const std::vector<std::pair<const Site*, std::uint32_t>>& trials) {
  const std::lock_guard lock(mutex_);
  screened_.clear();
  for (const auto& [site, config] : trials)
    if (site->index < prospects_.size() && !prospects_[site->index].survived[config])
      screened_.emplace_back(site->index, config);
  note_in_flight();
}

void Search::end_screening() {
  const std::lock_guard lock(mutex_);
  note_survived(screened_);
  screened_.clear();
  note_in_flight();
}

}  // namespace contextune::intercept
