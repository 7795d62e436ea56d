#include "core/agreement/shared_tuning.hpp"

#include <algorithm>
#include <cmath>

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
      topic_{settings_.group, 0, settings_.ranks},
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
  if (asked_ || batch_.number > 0 || failed_) return;
  narrow(settings_, {ranks.begin(), ranks.end()});
  topic_.group = settings_.group;
  topic_.ranks = settings_.ranks;
}

Key SharedTuning::public_key(const Key& key) const {
  return SharedSites::public_key(key);
}

SiteIndex SharedTuning::add_site(SiteSpec spec) {
  const SiteIndex here = sites_.add(std::move(spec), batch_.finished);
  if (here != no_site) take_winner(here);
  return here;
}

void SharedTuning::take_winner(SiteIndex here) {
  if (!failed_) sites_.take_winner(here, batch_.winners);
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
  decisions_.count(!entered_, settings_.is_late && std::isnan(first_now_));
  if (entered_) close_open_pass();
  last_now_ = now;
  ++entries_;
}

PassPlan SharedTuning::begin_pass(PassId id, double now, bool bounded) {
  awaiting_ = false;
  decisions_.count(!entered_, settings_.is_late && std::isnan(first_now_));
  if (entered_) close_open_pass();
  if (std::isnan(first_now_)) {
    first_now_ = now;
    observer_.stage(stage_, 0);
  }
  last_now_ = now;
  ++entries_;
  entered_ = true;
  rest_ = false;
  give_up_waiting(now);
  advance(now, bounded);
  plan_.assign(sites_.winners().begin(), sites_.winners().end());
  PassPlan plan{id, stage_, Measure::Nothing, false, Waiting::Nothing, {}};
  if (next_pass_is_due(bounded)) {
    plan_pass(plan);
  } else if (sites_.size() == 0 && !asked_ && !failed_ &&
             (bounded ? batch_.number == 0 : !observed_)) {
    observed_ = true;
    plan.counted = true;
  } else if (!finished()) {
    plan.waiting = asked_ || next_ < batch_.passes.size() ? Waiting::Ranks : batch_.waiting;
    if (plan.waiting == Waiting::Nothing) plan.waiting = Waiting::Results;
  }
  awaiting_ = !bounded && asked_;
  plan.configs = plan_;
  return plan;
}

bool SharedTuning::next_pass_is_due(bool bounded) const {
  return next_ < batch_.passes.size() && (!bounded || entries_ >= batch_.first_entry);
}

void SharedTuning::plan_pass(PassPlan& plan) {
  const Batch::Pass& pass = batch_.passes[next_];
  for (SharedIndex index = 0; index < pass.configs.size(); ++index) {
    const SiteIndex here = sites_.local(index);
    if (here != no_site) plan_[here] = sites_.runnable(here, pass.configs[index]);
  }
  seen_[next_].pass = plan.pass;
  plan.number = pass.number;
  plan.stage = pass.stage;
  plan.measure = pass.measure;
  plan.counted = true;
  plan.agreed = settings_.ranks.size() > 1;
  open_ = next_++;
  ++passes_;
}

void SharedTuning::end_pass(PassId id, std::span<const SiteIndex> launched,
                            std::span<const SiteIndex> failed, double now) {
  if (!entered_) return;
  last_now_ = now;
  if (open_ && seen_[*open_].pass != id) return;  // the end of another entry
  entered_ = false;
  if (!open_) return;
  Seen& seen = seen_[*open_];
  const Batch::Pass& pass = batch_.passes[*open_];
  open_.reset();
  seen.ended = true;
  for (const SiteIndex here : launched) {
    if (here >= sites_.size() || !sites_[here].index) continue;
    SiteResult one;
    one.site = *sites_[here].index;
    if (one.site >= pass.configs.size()) continue;
    const bool refused = std::find(failed.begin(), failed.end(), here) != failed.end();
    one.config = pass.configs[one.site];
    one.status = refused ? SiteResult::Status::LaunchFailed : SiteResult::Status::Missing;
    seen.report.sites.push_back(one);
  }
}

SharedTuning::Seen* SharedTuning::seen_of(PassId id) {
  for (Seen& seen : seen_)
    if (seen.pass == id && seen.ended && !seen.in) return &seen;
  return nullptr;
}

void SharedTuning::add_result(const PassResult& result, double now) {
  last_now_ = std::max(last_now_, now);
  Seen* seen = seen_of(result.pass);
  if (seen == nullptr) return;
  seen->in = true;
  if (result.lost) {
    seen->report.lost = true;
    return;
  }
  waited_entries_ = 0;
  PassReport& report = seen->report;
  if (!(report.region_seconds < 0)) report.region_seconds = result.region_seconds;
  report.sm_clock_hz = result.sm_clock_hz;
  report.throttled = result.throttled;
  for (const SiteResult& measured : result.sites) {
    if (measured.site >= sites_.size() || !sites_[measured.site].index) continue;
    for (SiteResult& one : report.sites) {
      if (one.site != *sites_[measured.site].index) continue;
      if (one.status == SiteResult::Status::LaunchFailed) continue;
      // The config in the report stays the one that was due: another one that ran is no sample.
      const bool as_planned = measured.config == one.config;
      one.launches = measured.launches;
      one.seconds = measured.seconds;
      one.in_pieces = measured.in_pieces;
      one.status = as_planned ? measured.status : SiteResult::Status::Missing;
      one.connection_bytes = measured.connection_bytes;
    }
  }
}

void SharedTuning::spend(double seconds, std::optional<PassId> id) {
  if (!id || !(seconds > 0)) return;
  for (Seen& seen : seen_)
    if (seen.pass == id && !seen.in)
      seen.report.region_seconds = std::min(0.0, seen.report.region_seconds) - seconds;
}

void SharedTuning::overrun(double now) {
  last_now_ = std::max(last_now_, now);
  if (batch_is_through() || failed_) return;
  overran_ = true;
  next_ = batch_.passes.size();
  for (Seen& seen : seen_) {
    seen.report.lost = seen.report.lost || !seen.in;
    seen.ended = seen.in = true;
  }
}

void SharedTuning::cut_short() {
  engagement_.end();
  if (failed_) return;
  close_open_pass();
  for (std::size_t p = next_; p < seen_.size(); ++p) {
    seen_[p].ended = seen_[p].in = true;
    seen_[p].report.lost = true;
  }
  next_ = batch_.passes.size();
}

std::unique_ptr<Lockstep> SharedTuning::lockstep() {
  if (settings_.ranks.size() < 2) return nullptr;
  StableHash group;
  group.add("passes");
  group.add(settings_.group);
  return std::make_unique<Lockstep>(coordinator_, settings_.lockstep_kind, group.value(),
                                    settings_.ranks, settings_.presync_timeout);
}

void SharedTuning::close_open_pass() {
  entered_ = false;
  if (!open_) return;
  Seen& seen = seen_[*open_];
  open_.reset();
  seen.ended = seen.in = true;
  seen.report.lost = true;
}

void SharedTuning::give_up_waiting(double now) {
  if (next_ < batch_.passes.size() || batch_is_through()) {
    waited_entries_ = 0;
    return;
  }
  if (waited_entries_++ == 0) waiting_since_ = now;
  if (waited_entries_ < options_.result_patience ||
      now - waiting_since_ < options_.result_patience_seconds) {
    return;
  }
  std::size_t late = 0;
  for (Seen& seen : seen_) {
    if (seen.in) continue;
    seen.in = seen.report.lost = true;
    ++late;
  }
  observer_.fallback(FallbackReason::LateResults, no_site,
                     "The results of " + std::to_string(late) + " passes did not come in " +
                         std::to_string(std::exchange(waited_entries_, 0)) +
                         " entries and count as missing.");
}

bool SharedTuning::batch_is_through() const {
  return next_ == batch_.passes.size() && !open_ &&
         std::all_of(seen_.begin(), seen_.end(), [](const Seen& seen) { return seen.in; });
}

bool SharedTuning::has_news() const {
  if (closed_) return false;
  if (batch_.finished && decisions_.has_untold()) return true;
  return sites_.has_news();
}

bool SharedTuning::finished() const {
  if (failed_) return true;
  return batch_.finished && !asked_ && batch_is_through() && !has_news();
}

TuningProgress SharedTuning::progress() const {
  const double seconds =
      std::isnan(first_now_) ? 0 : (finished() ? finished_at_ : last_now_) - first_now_;
  return {stage_, passes_, entries_, seconds};
}

}  // namespace contextune
