#include "core/agreement/scoped_tuning.hpp"

#include <algorithm>
#include <utility>

namespace contextune {

SiteIndex ScopedTuning::Reports::outer(SiteIndex site) const {
  return site < half_.outer.size() ? half_.outer[site] : no_site;
}

void ScopedTuning::Reports::trial(const TrialEvent& event) {
  TrialEvent own = event;
  own.site = outer(event.site);
  to_.trial(own);
}

void ScopedTuning::Reports::winner(const WinnerEvent& event) {
  WinnerEvent own = event;
  own.site = outer(event.site);
  to_.winner(own);
}

void ScopedTuning::Reports::left_out(const LeftOutEvent& event) {
  LeftOutEvent own = event;
  own.site = outer(event.site);
  to_.left_out(own);
}

void ScopedTuning::Reports::fallback(FallbackReason reason, SiteIndex site,
                                     const std::string& text) {
  to_.fallback(reason, outer(site), text);
}

std::vector<DecisionStanding> ScopedTuning::Decisions::standings() {
  std::vector<DecisionStanding> all;
  for (DecisionStanding one : port->standings()) {
    if (one.site >= of_.sites_.size() || !of_.sites_[one.site].shared) continue;
    one.site = of_.sites_[one.site].inner;
    all.push_back(one);
  }
  return all;
}

void ScopedTuning::Decisions::hold(std::span<const Limit> limits) {
  std::vector<Limit> all(limits.begin(), limits.end());
  for (Limit& one : all) one.site = of_.shared_half_.outer[one.site];
  port->hold(all);
}

std::string ScopedTuning::Decisions::commit(const DecisionLease& lease) {
  DecisionLease own = lease;
  own.site = of_.shared_half_.outer[lease.site];
  return port->commit(own);
}

ScopedTuning::ScopedTuning(const TuningOptions& options, SharedTuningSettings settings,
                           Coordinator& coordinator, TuningObserver& observer, Scope scope)
    : local_reports_(local_half_, observer),
      shared_reports_(shared_half_, observer),
      local_(options, &local_reports_),
      shared_(options, with_outcome(std::move(settings), *this), coordinator, shared_reports_),
      decisions_(*this),
      scope_(scope),
      together_(scope == Scope::Auto) {}

SharedTuningSettings ScopedTuning::with_outcome(SharedTuningSettings settings,
                                                const ScopedTuning& of) {
  settings.outcome = [&of] { return of.outcome(); };
  return settings;
}

std::string ScopedTuning::outcome() const {
  if (scope_ == Scope::Local && !together_) return "Its collectives run their default";
  return may_part() ? "With --scope auto this rank tunes its kernels and functions by itself, and "
                      "collectives keep their default"
                    : "All sites run their default, because what is repeated waits for other ranks";
}

bool ScopedTuning::may_part() const {
  const auto collective = [](const Site& site) { return site.spec.collective; };
  const bool waits = waits_for_ranks_ || std::any_of(sites_.begin(), sites_.end(), collective);
  return scope_ == Scope::Auto && !(repeated_ && waits);
}

void ScopedTuning::part() {
  parted_ = true;
  together_ = false;
  for (SiteIndex outer = 0; outer < sites_.size(); ++outer)
    if (!sites_[outer].spec.collective) move_to_half(outer, false);
}

void ScopedTuning::repeat_together(std::span<const std::uint32_t> ranks) {
  if (!ranks.empty()) shared_.ranks().limit_to(ranks);
  if (ranks.size() == 1) {
    if (!parted_) part();
    return;
  }
  waits_for_ranks_ = true;
  decide_together();
}

bool ScopedTuning::go_on_alone(const std::string& why) {
  if (!in_shared_ || !may_part()) return false;
  shared_.give_up(why);
  return true;
}

RegionTuning& ScopedTuning::half_of(bool shared) {
  return shared ? static_cast<RegionTuning&>(shared_) : local_;
}

SiteIndex ScopedTuning::add_to_half(const SiteSpec& spec, SiteIndex outer, bool shared) {
  // First its name: what is said of it while it is added is said by that.
  std::vector<SiteIndex>& names = (shared ? shared_half_ : local_half_).outer;
  names.push_back(outer);
  SiteIndex inner = no_site;
  try {
    inner = half_of(shared).add_site(spec);
  } catch (...) {
    names.pop_back();
    throw;
  }
  if (inner == no_site) names.pop_back();
  return inner;
}

SiteIndex ScopedTuning::add_site(SiteSpec spec) {
  if (spec.collective && repeated_) decide_together();
  const bool shared = spec.collective || together_;
  const auto outer = static_cast<SiteIndex>(sites_.size());
  const SiteIndex inner = add_to_half(spec, outer, shared);
  if (inner == no_site) return no_site;
  sites_.push_back({std::move(spec), shared, inner, {}, {}});
  return outer;
}

void ScopedTuning::decide_together() {
  if (std::exchange(together_, true)) return;
  for (SiteIndex outer = 0; outer < sites_.size(); ++outer)
    if (!sites_[outer].shared) move_to_half(outer, true);
}

void ScopedTuning::move_to_half(SiteIndex outer, bool shared) {
  Site& site = sites_[outer];
  SiteSpec spec = site.spec;
  spec.ready = site.spec.ready && site.unusable.empty();
  site.shared = shared;
  site.inner = add_to_half(spec, outer, shared);
  if (site.inner == no_site) return;
  RegionTuning& half = half_of(shared);
  if (site.spec.ready && !spec.ready) half.site_ready(site.inner, site.unusable);
  for (const auto& [config, why] : site.wrong) half.reject_config(site.inner, config, {}, why);
}

void ScopedTuning::site_ready(SiteIndex index, std::span<const std::uint32_t> unusable) {
  if (index >= sites_.size()) return;
  Site& site = sites_[index];
  site.spec.ready = true;
  site.unusable.assign(unusable.begin(), unusable.end());
  half_of(site.shared).site_ready(site.inner, unusable);
}

void ScopedTuning::reject_config(SiteIndex index, std::uint32_t config, const std::string& detail,
                                 Rejection why) {
  if (index >= sites_.size()) return;
  sites_[index].wrong[config] = why;
  half_of(sites_[index].shared).reject_config(sites_[index].inner, config, detail, why);
}

PassPlan ScopedTuning::begin_pass(PassId pass, double now, bool bounded) {
  const auto collective = [](const Site& site) { return site.shared; };
  repeated_ = !bounded;
  if (is_to_part()) part();
  const bool any_shared = std::any_of(sites_.begin(), sites_.end(), collective);
  if (!bounded && any_shared) decide_together();
  // A search that was begun together is ended together: the others count on it. Afterwards the
  // kernels' search looks for new ones.
  const bool shared_open = any_shared && !shared_.finished();
  in_shared_ = together_ || (shared_open && (shared_begun_ || local_.finished()));
  shared_begun_ = in_shared_;
  if (!in_shared_) shared_.pass_by(now);
  PassPlan plan = half_of(in_shared_).begin_pass(pass, now, bounded);
  if (in_shared_ && is_to_part()) {
    part();
    in_shared_ = shared_begun_ = false;
    plan = local_.begin_pass(pass, now, bounded);
  }
  const auto winners = this->winners();
  plan_.assign(winners.begin(), winners.end());
  const std::vector<SiteIndex>& outer = (in_shared_ ? shared_half_ : local_half_).outer;
  for (std::size_t inner = 0; inner < plan.configs.size() && inner < outer.size(); ++inner)
    if (sites_[outer[inner]].shared == in_shared_) plan_[outer[inner]] = plan.configs[inner];
  plan.configs = plan_;
  return plan;
}

std::vector<SiteIndex> ScopedTuning::inner_of(std::span<const SiteIndex> outer) const {
  std::vector<SiteIndex> inner;
  for (const SiteIndex index : outer)
    if (index < sites_.size() && sites_[index].shared == in_shared_)
      inner.push_back(sites_[index].inner);
  return inner;
}

void ScopedTuning::end_pass(PassId pass, std::span<const SiteIndex> launched,
                            std::span<const SiteIndex> failed, double now) {
  half_of(in_shared_).end_pass(pass, inner_of(launched), inner_of(failed), now);
}

// Each half ignores the passes of the other.
void ScopedTuning::add_result(const PassResult& result, double now) {
  for (const bool shared : {false, true}) {
    PassResult own = result;
    own.sites.clear();
    for (SiteResult one : result.sites) {
      if (one.site >= sites_.size() || sites_[one.site].shared != shared) continue;
      one.site = sites_[one.site].inner;
      own.sites.push_back(one);
    }
    half_of(shared).add_result(own, now);
  }
}

void ScopedTuning::spend(double seconds, std::optional<PassId> pass) {
  local_.spend(seconds, pass);
  if (pass) shared_.spend(seconds, pass);
}

void ScopedTuning::overrun(double now) {
  half_of(in_shared_).overrun(now);
}

void ScopedTuning::pause() {
  if (shared_begun_) shared_.ranks().pause();
}

bool ScopedTuning::keep_in_step(DecisionPort& port) {
  decisions_.port = &port;
  return shared_.ranks().keep_in_step(decisions_);
}

void ScopedTuning::explain_unfinished() {
  if (shared_begun_) shared_.explain_unfinished();
}

bool ScopedTuning::finished() const {
  if (is_to_part()) return false;
  if (together_) return shared_.finished();
  return local_.finished() && (shared_half_.outer.empty() || shared_.finished());
}

std::span<const std::uint32_t> ScopedTuning::winners() const {
  const auto local = local_.winners();
  const auto shared = shared_.winners();
  winners_.clear();
  for (const Site& site : sites_) {
    const auto& half = site.shared ? shared : local;
    winners_.push_back(site.inner < half.size() ? half[site.inner] : 0);
  }
  return winners_;
}

TuningProgress ScopedTuning::progress() const {
  const bool is_shared = together_ || (!shared_half_.outer.empty() && local_.finished());
  const TuningProgress local = local_.progress();
  const TuningProgress shared = shared_.progress();
  return {is_shared ? shared.stage : local.stage, local.passes + shared.passes, shared.entries,
          std::max(local.seconds, shared.seconds)};
}

}  // namespace contextune
