#include "intercept/tuner/search_sites.hpp"

#include <utility>

#include "core/search/tuning_site.hpp"
#include "intercept/program/settled_launches.hpp"

namespace contextune::intercept {

SearchSites Search::sites() noexcept {
  return SearchSites(*this);
}

bool SearchSites::add(Site& site, SiteSpec spec, const log::SiteFacts& facts,
                      std::span<const std::uint32_t> unusable) {
  const std::lock_guard lock(search_.mutex_);
  site.search = &search_;
  site.set_planned(site.pinned.value_or(0));
  site.set_settled(site.pinned.value_or(0));
  if (search_.end_.is_stopped()) return false;
  spec.pinned = site.pinned;
  SiteSpec named = spec;
  named.key = search_.tuning_->public_key(spec.key);
  EarlierResults& earlier = search_.reports_.results().earlier();
  const EarlierResults::Found found = earlier.find(spec, named.key, site.code);
  spec.stored = named.stored = found.winner;
  spec.outdated = found.is_outdated;
  if (found.has_noted) search_.storing_.was_noted();
  Suspicions suspicions = earlier.suspicions(spec, named.key);
  spec.suspicions = suspicions;
  spec.ready = spec.ready && unusable.empty();
  site.index = search_.tuning_->add_site(std::move(spec));
  if (site.index == no_site) return false;
  log::SiteFacts logged = facts;
  logged.table_passes = table_passes(named, search_.usual_);
  search_.reports_.log().add_site(site.index, named, logged);
  search_.reports_.results().add_site(site.index, named, site.code, facts.default_choice);
  if (named.ready && !unusable.empty()) search_.tuning_->site_ready(site.index, unusable);
  for (const std::uint32_t config : unusable)
    search_.reports_.results().exclude(site.index, config, TrialStatus::LaunchFailed);
  for (const std::uint32_t config : suspicions.blamed) {
    search_.reports_.results().exclude(site.index, config, TrialStatus::Crashed);
    search_.storing_.note_failed(site.index, config, TrialStatus::Crashed);
  }
  const bool is_first_span = site.timed_as_span && !search_.has_spans();
  if (is_first_span && search_.timers_.clock() == RegionClock::Row)
    search_.passes_.time_rows_of(site.index);
  search_.sites_.push_back(&site);
  search_.probation_.prospects().add_site(site, named.configs.size(), named.stored,
                                          std::move(suspicions));
  if (named.stored) {
    // The winner that is known runs from this launch on.
    site.set_planned(search_.tuning_->winners()[site.index]);
    site.set_settled(search_.tuning_->winners()[site.index]);
  }
  search_.probation_.note_winner(site.index);
  search_.end_.go_on();
  settled_changed();
  return true;
}

void SearchSites::ready(Site& site, std::span<const std::uint32_t> unusable) {
  const std::lock_guard lock(search_.mutex_);
  if (search_.end_.is_stopped() || site.index == no_site) return;
  search_.tuning_->site_ready(site.index, unusable);
  for (const std::uint32_t config : unusable)
    search_.reports_.results().exclude(site.index, config, TrialStatus::LaunchFailed);
  if (!search_.tuning_->finished()) {
    search_.end_.reopen();
  } else if (search_.passes_.entry() == nullptr) {
    search_.settle_all();  // the store may know which of what is built now is the winner
    search_.after_change();
  }
  settled_changed();
}

void SearchSites::drop_winner(Site& site, const std::string& text) {
  const std::lock_guard lock(search_.mutex_);
  search_.storing_.note_failed(site.index, site.settled(), TrialStatus::LaunchFailed);
  site.dropped = true;
  site.set_settled(0);
  site.set_planned(0);
  search_.note_winners();
  search_.log_.fallback(FallbackReason::WinnerFailed, search_.region_, site.label(), text);
}

bool SearchSites::are_tuned() const {
  const std::lock_guard lock(search_.mutex_);
  return !search_.end_.is_stopped() && !search_.sites_.empty() && search_.tuning_->finished();
}

bool SearchSites::has_winner(const Site& site) const {
  const std::lock_guard lock(search_.mutex_);
  return search_.reports_.results().has_winner(site.index);
}

bool SearchSites::are_only_shown() const noexcept {
  return search_.reports_.results().earlier().is_complete() && !search_.entries_.any_planned();
}

void SearchSites::note_unfinished() {
  {
    const std::lock_guard lock(search_.mutex_);
    if (search_.end_.is_stopped() || search_.tuning_->finished() ||
        !search_.storing_.note_unfinished()) {
      return;
    }
  }
  search_.storing_.await_saved();
}

Measurements SearchSites::measurements(const Site& site, std::uint32_t config) const {
  const std::lock_guard lock(search_.mutex_);
  return search_.reports_.results().measurements(site.index, config);
}

std::optional<StoredTrial> SearchSites::stored_trial(const Site& site, std::uint32_t config) const {
  const std::lock_guard lock(search_.mutex_);
  const StoredTrial* const found = search_.reports_.results().stored_trial(site.index, config);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

}  // namespace contextune::intercept
