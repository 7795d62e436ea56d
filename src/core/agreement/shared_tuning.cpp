#include "core/agreement/shared_tuning.hpp"

#include <algorithm>

#include "core/value/stable_hash.hpp"

namespace contextune {

SharedTuning::SharedTuning(const TuningOptions& options, SharedTuningSettings settings,
                           Coordinator& coordinator, TuningObserver& observer)
    : options_(options),
      settings_(std::move(settings)),
      coordinator_(coordinator),
      observer_(observer),
      sites_(options_, observer),
      decisions_(sites_, observer),
      run_(options_, observer, sites_),
      backoff_(settings_.presync_timeout),
      question_(coordinator, {settings_.group, 0, settings_.ranks}, settings_.kind,
                settings_.presync_timeout),
      entries_(settings_.entries_before) {}

void narrow(SharedTuningSettings& settings, std::vector<std::uint32_t> ranks) {
  if (ranks == settings.ranks) return;
  StableHash group;
  group.add(settings.group);
  for (const std::uint32_t rank : ranks) group.add(rank);
  settings.group = group.value();
  settings.ranks = std::move(ranks);
}

void SharedTuning::limit_to(std::span<const std::uint32_t> ranks) {
  if (question_.is_open() || run_.batch().number > 0 || has_failed()) return;
  narrow(settings_, {ranks.begin(), ranks.end()});
  question_.narrow(settings_.group, settings_.ranks);
}

Key SharedTuning::public_key(const Key& key) const {
  return SharedSites::public_key(key);
}

SiteIndex SharedTuning::add_site(SiteSpec spec) {
  const SiteIndex here = sites_.add(std::move(spec), run_.batch().finished);
  if (here != no_site) take_winner(here);
  return here;
}

void SharedTuning::take_winner(SiteIndex here) {
  if (!has_failed()) sites_.take_winner(here, run_.batch().winners);
}

void SharedTuning::site_ready(SiteIndex index, std::span<const std::uint32_t> unusable) {
  if (index >= sites_.size() || sites_[index].ready) return;
  sites_.set_ready(index, unusable);
  take_winner(index);
}

void SharedTuning::reject_config(SiteIndex index, std::uint32_t config,
                                 const std::string& /*detail*/, Rejection why) {
  sites_.reject(index, config, why);
}

bool SharedTuning::keep_in_step(DecisionPort& port) {
  decisions_.set_port(port);
  return true;
}

void SharedTuning::pass_by(double now) {
  decisions_.count(!run_.entered(), settings_.is_late && !clock_.has_begun());
  run_.abandon_entry();
  clock_.reach(now);
  ++entries_;
}

PassPlan SharedTuning::begin_pass(PassId id, double now, bool bounded) {
  question_.expect_await(false);
  decisions_.count(!run_.entered(), settings_.is_late && !clock_.has_begun());
  run_.abandon_entry();
  if (clock_.begin(now)) observer_.stage(stage_, 0);
  clock_.reach(now);
  ++entries_;
  run_.enter();
  backoff_.wake();
  run_.give_up_waiting(now);
  advance(bounded);
  PassPlan plan{id, stage_, Measure::Nothing, false, Waiting::Nothing, {}};
  const Batch::Pass* pass = nullptr;
  if (next_pass_is_due(bounded)) {
    pass = &run_.begin_next(id);
    plan.number = pass->number;
    plan.stage = pass->stage;
    plan.measure = pass->measure;
    plan.counted = true;
    plan.agreed = settings_.ranks.size() > 1;
  } else if (sites_.size() == 0 && !question_.is_open() && !has_failed() &&
             (bounded ? run_.batch().number == 0 : !observed_)) {
    observed_ = true;
    plan.counted = true;
  } else if (!finished()) {
    plan.waiting = question_.is_open() || run_.has_next() ? Waiting::Ranks : run_.batch().waiting;
    if (plan.waiting == Waiting::Nothing) plan.waiting = Waiting::Results;
  }
  question_.expect_await(!bounded && question_.is_open());
  plan.configs = sites_.plan(pass);
  return plan;
}

bool SharedTuning::next_pass_is_due(bool bounded) const {
  return run_.has_next() && (!bounded || entries_ >= run_.batch().first_entry);
}

void SharedTuning::end_pass(PassId id, std::span<const SiteIndex> launched,
                            std::span<const SiteIndex> failed, double now) {
  if (!run_.entered()) return;
  clock_.reach(now);
  if (!run_.may_end(id)) return;  // the end of another entry
  run_.end_entry(launched, failed);
}

void SharedTuning::add_result(const PassResult& result, double now) {
  clock_.reach_at_least(now);
  run_.add_result(result);
}

void SharedTuning::spend(double seconds, std::optional<PassId> id) {
  if (id && seconds > 0) run_.spend(seconds, *id);
}

void SharedTuning::overrun(double now) {
  clock_.reach_at_least(now);
  if (!run_.is_through() && !has_failed()) run_.overrun();
}

void SharedTuning::cut_short() {
  engagement_.end();
  if (has_failed()) return;
  run_.cut_short();
}

std::unique_ptr<Lockstep> SharedTuning::lockstep() {
  if (settings_.ranks.size() < 2) return nullptr;
  StableHash group;
  group.add("passes");
  group.add(settings_.group);
  return std::make_unique<Lockstep>(coordinator_, settings_.lockstep_kind, group.value(),
                                    settings_.ranks, settings_.presync_timeout);
}

bool SharedTuning::has_news() const {
  if (accord_ == Accord::Closed) return false;
  if (run_.batch().finished && decisions_.has_untold()) return true;
  return sites_.has_news();
}

bool SharedTuning::finished() const {
  if (has_failed()) return true;
  return run_.batch().finished && !question_.is_open() && run_.is_through() && !has_news();
}

TuningProgress SharedTuning::progress() const {
  return {stage_, run_.passes(), entries_, clock_.seconds(finished())};
}

}  // namespace contextune
