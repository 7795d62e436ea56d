#include "core/agreement/joining_tuning.hpp"

#include "core/agreement/scoped_tuning.hpp"

#include <utility>

namespace contextune {
namespace {

/// As the search of this process alone may know it. Not ready until it is known that it stays so.
SiteSpec alone(SiteSpec spec) {
  if (spec.collective && !spec.configs.empty()) {
    spec.configs.resize(1);
    spec.pinned.reset();
    spec.ready = false;
  }
  return spec;
}

}  // namespace

JoiningTuning::JoiningTuning(const TuningOptions& options, std::unique_ptr<CompanionSource> source,
                             TuningObserver& observer)
    : options_(options),
      source_(std::move(source)),
      observer_(observer),
      inner_(std::make_unique<Tuning>(options, &observer)) {}

SiteIndex JoiningTuning::add_site(SiteSpec spec) {
  const SiteIndex index = inner_->add_site(joined_ ? spec : alone(spec));
  if (index == no_site) return index;
  if (spec.collective) {
    has_collectives_ = true;
    if (!joined_) undecided_.push_back(index);
  }
  sites_.resize(index + 1U);
  sites_[index].spec = std::move(spec);
  return index;
}

Key JoiningTuning::public_key(const Key& key) const {
  if (joined_ || !source_->may_be_any()) return inner_->public_key(key);
  Key shared;
  for (const Key::Entry& entry : key.entries())
    if (entry.first != "device") shared.add(entry.first, entry.second);
  return shared;
}

void JoiningTuning::site_ready(SiteIndex index, std::span<const std::uint32_t> unusable) {
  if (index >= sites_.size()) return;
  Site& site = sites_[index];
  site.spec.ready = true;
  site.unusable.assign(unusable.begin(), unusable.end());
  if (joined_ || !site.spec.collective) inner_->site_ready(index, unusable);
}

void JoiningTuning::reject_config(SiteIndex index, std::uint32_t config, const std::string& detail,
                                  Rejection why) {
  if (index >= sites_.size()) return;
  sites_[index].wrong[config] = why;
  if (joined_ || !sites_[index].spec.collective) inner_->reject_config(index, config, detail, why);
}

PassPlan JoiningTuning::begin_pass(PassId pass, double now, bool bounded) {
  ++entries_;
  seeks_ = false;
  bounded_ = bounded;
  if (!joined_ && needs_companions()) {
    std::vector<DecisionStanding> used;
    if (port_ != nullptr) used = port_->standings();
    if (sought_since_ == 0) sought_since_ = entries_;
    Companions found = source_->find(used, entries_ - sought_since_, bounded, now);
    if (found.state == Companions::State::Sought) {
      seeks_ = true;
      return idle_entry(pass, false);
    }
    if (found.state == Companions::State::Known) join(std::move(found));
    // Alone, it would not repeat what others wait for in it as often as they do.
    if (!joined_ && repeats_together_ && !bounded) return idle_entry(pass, false);
    for (const SiteIndex index : std::exchange(undecided_, {}))
      if (!joined_) inner_->site_ready(index);
  }
  if (!joined_ && entries_ == 1 && source_->may_be_any()) return idle_entry(pass, true);
  return inner_->begin_pass(pass, now, bounded);
}

bool JoiningTuning::needs_companions() const {
  return has_collectives_ || repeats_together_ ||
         (entries_ > 1 && !is_limited_to_one_ && source_->are_certain());
}

void JoiningTuning::leave(const std::string& why) {
  if (!joined_ && needs_companions() && !std::exchange(left_, true)) {
    seeks_ = false;
    std::vector<DecisionStanding> used;
    if (port_ != nullptr) used = port_->standings();
    Companions found = source_->leave(used, bounded_);
    if (found.state == Companions::State::Known) join(std::move(found));
  }
  inner_->ranks().leave(why);
}

PassPlan JoiningTuning::idle_entry(PassId pass, bool counted) {
  PassPlan plan;
  plan.pass = pass;
  plan.stage = inner_->progress().stage;
  plan.counted = counted;
  plan.waiting = counted ? Waiting::Nothing : Waiting::Ranks;
  return plan;  // without configs: every site runs its default
}

void JoiningTuning::join(Companions&& companions) {
  companions.settings.entries_before = entries_ - 1;
  companions.settings.is_late = with_collectives_ > 1;
  std::unique_ptr<RegionTuning> shared;
  if (companions.scope != Scope::Global) {
    shared = std::make_unique<ScopedTuning>(options_, std::move(companions.settings),
                                            *companions.coordinator, observer_, companions.scope);
  } else {
    shared = std::make_unique<SharedTuning>(options_, std::move(companions.settings),
                                            *companions.coordinator, observer_);
  }
  if (repeats_together_) shared->ranks().repeat_together({});
  if (port_ != nullptr) (void)shared->ranks().keep_in_step(*port_);
  for (const Site& site : sites_) {
    SiteSpec spec = site.spec;
    spec.ready = spec.ready && site.unusable.empty();
    const SiteIndex index = shared->add_site(std::move(spec));
    if (index == no_site) continue;
    if (site.spec.ready && !site.unusable.empty()) shared->site_ready(index, site.unusable);
    for (const auto& [config, why] : site.wrong) shared->reject_config(index, config, {}, why);
  }
  inner_ = std::move(shared);
  joined_ = true;
}

void JoiningTuning::end_pass(PassId pass, std::span<const SiteIndex> launched,
                             std::span<const SiteIndex> failed, double now) {
  if (has_collectives_) ++with_collectives_;
  inner_->end_pass(pass, launched, failed, now);
}

void JoiningTuning::repeat_together(std::span<const std::uint32_t> ranks) {
  if (!ranks.empty()) limit_to(ranks);
  if (ranks.size() == 1) return;
  repeats_together_ = true;
  if (joined_) inner_->ranks().repeat_together(ranks);
}

bool JoiningTuning::keep_in_step(DecisionPort& port) {
  port_ = &port;
  if (joined_) (void)inner_->ranks().keep_in_step(port);
  return true;
}

void JoiningTuning::explain_unfinished() {
  inner_->explain_unfinished();
  if (!seeks_ || std::exchange(said_, true)) return;
  observer_.fallback(FallbackReason::NoAgreement, no_site,
                     "The ranks had not found out by entry " + std::to_string(entries_) +
                         " which of them have to do with this region.");
}

}  // namespace contextune
