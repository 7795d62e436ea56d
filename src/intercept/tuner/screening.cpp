#include "intercept/tuner/screening.hpp"

#include <mutex>

namespace contextune::intercept {

Screening Search::screening() noexcept {
  return Screening(*this);
}

bool Screening::may_try(const Site& site, std::uint32_t config) const {
  const std::lock_guard lock(search_.mutex_);
  return search_.probation_.prospects().may_try(site.index, config);
}

bool Screening::has_to_time(const Site& site, std::uint32_t config) const {
  const std::lock_guard lock(search_.mutex_);
  return search_.probation_.prospects().has_to_time(site.index, config);
}

std::vector<std::uint32_t> Screening::suspects(const Site& site) const {
  const std::lock_guard lock(search_.mutex_);
  return search_.probation_.prospects().suspects(site.index);
}

bool Screening::has_suspects() const {
  const std::lock_guard lock(search_.mutex_);
  return !search_.end_.is_stopped() && !search_.finished() &&
         search_.probation_.prospects().has_suspects();
}

bool Screening::awaits_trials(double now) {
  const std::lock_guard lock(search_.mutex_);
  if (search_.probation_.in_flight().empty()) return false;
  search_.timers_.poll(false);
  search_.drain(false, now);
  search_.note_in_flight();
  return !search_.probation_.in_flight().empty();
}

bool Screening::was_right(const Site& site, std::uint32_t config) const {
  const std::lock_guard lock(search_.mutex_);
  return search_.probation_.prospects().was_right(site.index, config) ||
         search_.reports_.results().is_compared(site.index, config);
}

void Screening::were_right(const Trials& trials) {
  const std::lock_guard lock(search_.mutex_);
  for (const auto& [site, config] : trials)
    if (site->index != no_site) search_.reports_.results().note_compared(site->index, config);
}

void Screening::leave_uncompared(const Site& site, std::uint32_t config, const std::string& text) {
  const std::lock_guard lock(search_.mutex_);
  if (search_.end_.is_stopped() || site.index == no_site) return;
  search_.reports_.results().leave_out(site.index, config);
  search_.tuning_->reject_config(site.index, config, text, Rejection::NotCompared);
  search_.settle_all();
  search_.after_change();
}

void Screening::leave_out(const Site& site, std::span<const std::uint32_t> configs) {
  const std::lock_guard lock(search_.mutex_);
  if (!search_.end_.is_stopped() && site.index != no_site)
    search_.reports_.results().leave_out(site.index, configs);
}

void Screening::was_wrong(const Site& site, std::uint32_t config) {
  const std::lock_guard lock(search_.mutex_);
  if (!search_.end_.is_stopped() && site.index != no_site)
    search_.reports_.results().exclude(site.index, config, TrialStatus::WrongResult);
}

void Screening::reject(const Site& site, std::uint32_t config) {
  const std::lock_guard lock(search_.mutex_);
  if (search_.end_.is_stopped() || site.index == no_site) return;
  search_.reports_.results().exclude(site.index, config, TrialStatus::WrongResult);
  search_.storing_.note_failed(site.index, config, TrialStatus::WrongResult);
  search_.tuning_->reject_config(
      site.index, config,
      "Config " + std::to_string(config) + " (" + site.configs[config].to_string() +
          ") computes something else than the default and is never chosen.");
  search_.settle_all();
  search_.after_change();
}

void Screening::begin(const Trials& trials) {
  const std::lock_guard lock(search_.mutex_);
  const Prospects& prospects = search_.probation_.prospects();
  Probation::Trials screened;
  for (const auto& [site, config] : trials)
    if (site->index < prospects.num_sites() && !prospects.survived(site->index, config))
      screened.emplace_back(site->index, config);
  search_.probation_.screen(screened);
  search_.note_in_flight();
}

void Screening::end() {
  const std::lock_guard lock(search_.mutex_);
  search_.note_survived(search_.probation_.screened());
  search_.probation_.screen({});
  search_.note_in_flight();
}

}  // namespace contextune::intercept
