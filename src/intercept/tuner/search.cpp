#include "intercept/tuner/search.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "intercept/host/clock.hpp"

namespace contextune::intercept {
namespace {

// Between two looks whether an entry may begin.
constexpr std::chrono::microseconds least_settle_pause{50};
constexpr std::chrono::microseconds most_settle_pause{1000};

}  // namespace

Search::Search(std::string region, const MakeTuning& make_tuning, RegionClock clock,
               Judging judging, Measurement& measurement, ProcessStore& store, EventLog& log,
               const StoredAs& as, const ScheduleShape& usual)
    : region_(std::move(region)),
      log_(log),
      usual_(usual),
      timers_(measurement, clock),
      reports_(log, region_, timers_.name(), store, as, std::move(judging),
               clock == RegionClock::Work),
      probation_(reports_.results(), store),
      storing_(reports_.results(), store),
      tuning_(make_tuning(reports_.first(), reports_.results().earlier().any())),
      passes_(measurement, timers_.id(), clock) {
  if (timers_.id() == 0) {
    stop(FallbackReason::TooManySites, "There are more searches than can be told apart (65535).");
  }
}

void Search::settle_all() {
  const auto winners = tuning_->winners();
  for (std::size_t i = 0; i < sites_.size(); ++i) {
    const bool known = !end_.is_stopped() && i < winners.size();
    std::uint32_t config = known ? winners[i] : sites_[i]->pinned.value_or(0);
    if (sites_[i]->dropped) config = 0;
    sites_[i]->set_settled(config);
    sites_[i]->set_planned(config);
  }
  note_winners();
}

PassPlan Search::plan_entry(double now, bool bounded) {
  probation_.probe().drop();
  entries_.note_planned();
  tuning_->hold_passes(passes_.hold().is_wanted());
  const PassPlan plan = tuning_->begin_pass(entries_.next(), now, bounded);
  settle_all();
  for (std::size_t i = 0; i < sites_.size(); ++i) {
    if (i < plan.configs.size() && !sites_[i]->dropped) sites_[i]->set_planned(plan.configs[i]);
  }
  const Measure measure = timers_.measure(plan.measure);
  if (plan.counted && measure == Measure::Activity) {
    const double begin = now_seconds();
    const bool can_measure = timers_.want(true);
    tuning_->spend(now_seconds() - begin);  // CUPTI halts the program when it is opened
    if (!can_measure) {
      leave("single launches can be timed no longer");
      settle_all();
      after_change();
      return {};
    }
    reports_.log().set_timer(timers_.name());
  } else if (plan.counted || plan.stage == Stage::Finished) {
    (void)timers_.want(false);
    if (measure == Measure::Span && has_spans()) timers_.compare_without_cupti();
  }
  const bool by_work = timers_.clock() == RegionClock::Work;
  PassRecord& entry = passes_.open(plan.pass, by_work ? plan.measure : measure, plan.configs);
  entry.counted = plan.counted;
  entry.agreed = plan.agreed;
  if (plan.counted && plan.stage == Stage::Table && plan.measure == Measure::Activity)
    entry.row = log::TableRow{plan.number, plan.agreed, now};
  Watch watch = Watch::Count;
  if (plan.counted && measure == Measure::Activity) watch = Watch::Activity;
  if (plan.counted && measure == Measure::Span) {
    watch = Watch::Span;
    passes_.time_entry();
    passes_.hold().time_entry();
  }
  entry.is_probed = watch == Watch::Count && open_probe(false);
  if (entry.is_probed) watch = Watch::Span;
  watch_.store(watch, std::memory_order_release);
  settled_changed();
  probation_.entry_begins(now);
  // The findings of a stage are kept when it is over.
  keep_so_far(now, storing_.enters(plan.stage));
  note_tried();
  return plan;
}

void Search::keep_so_far(double now, bool at_once) {
  if (!end_.is_stopped() && !tuning_->finished()) storing_.keep(now, at_once);
}

void Search::pass_by(double now) {
  if (probation_.has_winners()) begin_probe(now);
  skip();
}

void Search::time_rows() {
  const std::lock_guard lock(mutex_);
  if (!sites_.empty()) return;
  timers_.set_clock(RegionClock::Row);
  reports_.log().set_timer("events");
}

bool Search::begin(double now) {
  if (finished()) {
    pass_by(now);
    return false;
  }
  std::unique_lock lock(mutex_);
  // Launches of other threads need the lock, however long it takes.
  for (auto pause = least_settle_pause;
       !nothing_to_do() && !tuning_->ranks().settle(TuningRanks::Due::Entry, now);
       pause = std::min(2 * pause, most_settle_pause)) {
    lock.unlock();
    std::this_thread::sleep_for(pause);
    now = now_seconds();
    lock.lock();
  }
  if (nothing_to_do()) return skip_entry();
  if (tuning_->wants_results()) timers_.poll(false);
  drain(false, now);
  tuning_->skip_entries(entries_.take_skipped());
  const bool counted = plan_entry(now, true).counted;
  after_change();
  return counted;
}

void Search::may_hold_entries(bool may, bool twice) {
  const std::lock_guard lock(mutex_);
  passes_.hold().allow(may, twice);
}

void Search::end(double now) {
  if (watch() == Watch::Nothing) return;
  const std::lock_guard lock(mutex_);
  if (passes_.hold().is_first_run() && !passes_.entry()->spoiled) {
    watch_.store(Watch::Nothing, std::memory_order_release);
    return;
  }
  const std::unique_ptr<PassRecord> record = passes_.close();
  if (record == nullptr) return;
  watch_.store(Watch::Nothing, std::memory_order_release);
  note_unheld();
  if (probation_.probe().end(record->span_open)) return;
  const auto launched = record->spoiled ? std::vector<SiteIndex>{} : record->sites_launched();
  const auto failed = record->spoiled ? std::vector<SiteIndex>{} : record->sites_failed();
  for (const SiteIndex index : failed)
    storing_.note_failed(index, sites_[index]->planned(), TrialStatus::LaunchFailed);
  report_runs(*record, launched, failed);
  tuning_->end_pass(record->pass, launched, failed, now);
  end_.note_run(record->counted && record->measure == Measure::Nothing && !record->spoiled &&
                failed.empty() && tuning_->finished());
  if (record->counted) {
    record->clock = timers_.read_clock();
    if (record->clock.throttled) log_.fallback(FallbackReason::Throttled, region_, {}, {});
    const bool no_span = record->measure == Measure::Span && timers_.clock() != RegionClock::Work &&
                         !record->span_open;
    if (record->spoiled || no_span) {
      tuning_->add_result(PassResult::none(record->pass), now);
    } else if (const auto given_up = passes_.await(std::move(*record))) {
      tuning_->add_result(PassResult::none(*given_up), now);
    }
  }
  settle_all();
  after_change();
}

void Search::note_unheld() {
  using Refusal = EntryHold::Refusal;
  switch (passes_.hold().take_refusal()) {
    case Refusal::None:
      return;
    case Refusal::BodyWaits:
      return log_.fallback(FallbackReason::BodyWaits, region_, {}, {});
    case Refusal::DriverRefuses:
      return log_.fallback(FallbackReason::NotHeld, region_, {},
                           "The region is compared as the host launches it, because the driver "
                           "does not have a stream of it wait for a value in memory.");
    case Refusal::NoMemory:
      return log_.fallback(FallbackReason::NotHeld, region_, {},
                           "The region is compared as the host launches it, because there is no "
                           "memory or no thread to have the GPU wait with.");
  }
}

void Search::report_runs(const PassRecord& record, std::span<const SiteIndex> launched,
                         std::span<const SiteIndex> failed) {
  if (!record.row) return;
  std::vector<log::SiteRun> runs;
  runs.reserve(launched.size());
  for (const SiteIndex index : launched) {
    const bool has_failed = std::find(failed.begin(), failed.end(), index) != failed.end();
    log::SiteRun& run = runs.emplace_back(log::SiteRun{index, {}});
    if (record.has_run_one(index)) run.config = has_failed ? 0 : sites_[index]->planned();
  }
  reports_.log().ran(*record.row, runs);
}

void Search::after_change() {
  if (!end_.has_come(tuning_->finished(), sites_.size())) return;
  note_in_flight();
  if (!end_.is_stopped()) storing_.save();
  if (end_.is_finished()) return;
  settle_all();
  timers_.end();
  end_.finish();
  if (timers_.clock() != RegionClock::Work) summarise_new();
}

void Search::hear(std::span<const EndedPass> ended, double now) {
  for (const EndedPass& one : ended) {
    if (!one.result) {
      close_probe(one.pass, one.seconds);
      continue;
    }
    if (!one.survived.empty()) note_survived(one.survived);
    if (one.row) reports_.log().took(*one.row, one.result->region_seconds);
    tuning_->add_result(*one.result, now);
  }
}

void Search::drain(bool everything, double now) {
  hear(passes_.take(everything), now);
}

}  // namespace contextune::intercept
