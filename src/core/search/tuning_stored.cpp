// The findings of earlier runs: winners that hold at once, and those that have to be shown again.
#include <algorithm>
#include <utility>

#include "core/search/tuning_engine.hpp"

namespace contextune {

void Tuning::Engine::site_stored(SiteIndex index, const StoredWinner& stored) {
  if (index >= sites_.size() || sites_[index].ready || sites_[index].trivial) return;
  if (stored.config < sites_[index].spec.configs.size()) sites_[index].spec.stored = stored;
}

void Tuning::Engine::site_suspected(SiteIndex index, const Suspicions& suspicions) {
  if (index < sites_.size() && !sites_[index].ready) sites_[index].spec.suspicions = suspicions;
}

void Tuning::Engine::take_suspicions(SiteIndex index) {
  TuningSite& site = sites_[index];
  if (site.spec.pinned) return;
  for (const std::uint32_t config : site.spec.suspicions.blamed) {
    if (config == 0 || config >= site.spec.configs.size()) continue;
    const bool is_new = give_up_config(index, config);
    site.failed[config] = TrialStatus::Crashed;
    if (!is_new) continue;
    // Where the ranks' configs are only numbered, whoever knows their values adds them.
    const Config& values = site.spec.configs[config];
    observer_.fallback(FallbackReason::ConfigCrashed, index,
                       "Config " + std::to_string(config) +
                           (values.empty() ? "" : " (" + values.to_string() + ")") + " of '" +
                           site.spec.name +
                           "' has taken down the process that tried it, or has not ended there; it "
                           "is not tried again.");
  }
}

void Tuning::Engine::settle_suspect(const PendingPass& pass) {
  if (suspects_.empty() || suspects_.front().site != pass.suspect->site ||
      suspects_.front().config != pass.suspect->config) {
    return;
  }
  const SiteIndex site = pass.suspect->site;
  const bool was_tried = std::ranges::find(pass.launched, site) != pass.launched.end();
  if (!was_tried && ++suspects_.front().passes < options_.stall_passes) return;
  // A config that could not be tried alone is not tried beside others.
  if (!was_tried && sites_[site].progress && give_up_config(site, pass.suspect->config))
    sites_[site].progress->fail(pass.suspect->config, 0);
  if (sites_[site].suspected && sites_[site].spec.stored->config == pass.suspect->config)
    leave_suspect(site, was_tried);
  suspects_.pop_front();
}

void Tuning::Engine::leave_suspect(SiteIndex index, bool survived) {
  TuningSite& site = sites_[index];
  if (site.failed.contains(site.spec.stored->config)) survived = false;
  site.suspected = false;
  if (survived) {
    if (!site.spec.stored->needs_confirm) sites_.choose(index, site.known);
    return;
  }
  // The next run tries it again: what is stored of it stays.
  site.spec.stored.reset();
  sites_.choose(index, 0);
  site.reason = WinnerReason::NoSamples;
}

void Tuning::Engine::give_up_suspects() {
  for (const SuspectConfig& suspect : std::exchange(suspects_, {}))
    if (sites_[suspect.site].suspected) leave_suspect(suspect.site, false);
}

void Tuning::Engine::take_stored(SiteIndex index) {
  TuningSite& site = sites_[index];
  if (!site.spec.stored) return;
  const std::uint32_t winner = site.spec.stored->config;
  // A config that cannot be tried here is nothing to find out.
  std::erase_if(site.spec.stored->untried,
                [&](std::uint32_t config) { return site.failed.contains(config); });
  const auto& suspects = site.spec.suspicions.suspects;
  site.suspected = winner != 0 && std::ranges::find(suspects, winner) != suspects.end();
  // A suspect of those is found out about by the whole region's time, as any other config of them.
  const bool is_lost = site.suspected && site.spec.objective == Objective::Region;
  if (site.failed.contains(winner) || is_lost) {
    site.suspected = false;
    site.spec.stored.reset();  // not here any more
    // An earlier run has had it: it is none that comes once and never again.
    site.times_launched = std::max(site.times_launched, launches_to_count);
    return;
  }
  site.known = site.spec.stored->config;
  site.reason = WinnerReason::Stored;
  site.trivial = site.spec.stored->holds() && !site.suspected;
  if (!site.holds_back()) sites_.choose(index, site.known);
}

bool Tuning::Engine::store_settles_all() const {
  bool any = false;
  for (const TuningSite& site : sites_) {
    if (site.is_stored()) {
      any = true;
    } else if (site.ready && !site.trivial) {
      return false;  // those that are not ready are the next generation's
    }
  }
  return any;
}

void Tuning::Engine::tune_anew() {
  bool any = false;
  for (SiteIndex index = 0; index < sites_.size(); ++index) {
    TuningSite& site = sites_[index];
    if (!sites_.is_current(site) || !site.spec.stored || !site.spec.stored->needs_confirm) continue;
    site.spec.stored.reset();
    site.generation.reset();
    site.progress.reset();
    site.settled = false;
    sites_.choose(index, 0);
    site.reason = WinnerReason::NoSamples;
    any = true;
  }
  if (any) observer_.fallback(FallbackReason::StaleWinners, no_site, {});
}

}  // namespace contextune
