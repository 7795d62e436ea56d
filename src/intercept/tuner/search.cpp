#include "intercept/tuner/search.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "intercept/host/clock.hpp"

namespace contextune::intercept {
namespace {

// Entries after the end that are watched for a site that was first seen late to come again.
constexpr int most_idle_entries = 64;
// For passes to be compared without CUPTI: to look whether it can leave takes up to 0.1 ms.
constexpr int most_release_tries = 8;
// Between two looks whether an entry may begin.
constexpr std::chrono::microseconds least_settle_pause{50};
constexpr std::chrono::microseconds most_settle_pause{1000};

}  // namespace

Search::Search(std::string region, const MakeTuning& make_tuning, RegionClock clock,
               Judging judging, Measurement& measurement, ProcessStore& store, EventLog& log,
               const StoredAs& as)
    : region_(std::move(region)),
      clock_(clock),
      measurement_(measurement),
      log_(log),
      id_(measurement.add_search()),
      observer_(log.lines(), region_, measurement.timer_name(), log.simulated()),
      store_(store),
      results_(store, region_, as, std::move(judging), clock == RegionClock::Work, observer_),
      probation_(results_, store),
      no_agreement_(results_),
      times_(no_agreement_),
      tuning_(make_tuning(times_, results_.earlier().any())),
      passes_(measurement, id_, clock) {
  if (clock_ == RegionClock::Work) observer_.set_site_alone();
  if (id_ == 0) {
    stop(FallbackReason::TooManySites, "There are more searches than can be told apart (65535).");
  }
}

void Search::settle_all() {
  const auto winners = tuning_->winners();
  for (std::size_t i = 0; i < sites_.size(); ++i) {
    const bool known = !stopped_ && i < winners.size();
    std::uint32_t config = known ? winners[i] : sites_[i]->pinned.value_or(0);
    if (sites_[i]->dropped) config = 0;
    sites_[i]->set_settled(config);
    sites_[i]->set_planned(config);
  }
  note_winners();
}

bool Search::looks_first() const noexcept {
  return results_.earlier().is_complete() && !was_entered_.load(std::memory_order_relaxed);
}

PassPlan Search::plan_entry(double now, bool bounded) {
  probation_.probe().drop();
  was_entered_.store(true, std::memory_order_relaxed);
  const PassPlan plan = tuning_->begin_pass(next_pass(), now, bounded);
  settle_all();
  for (std::size_t i = 0; i < sites_.size(); ++i) {
    if (i < plan.configs.size() && !sites_[i]->dropped) sites_[i]->set_planned(plan.configs[i]);
  }
  Measure measure = plan.measure;
  if (measure == Measure::Span && clock_ == RegionClock::Work) measure = Measure::Activity;
  if (measure == Measure::Activity && only_region_time_) measure = Measure::Span;
  if (plan.counted && measure == Measure::Activity) {
    const double begin = now_seconds();
    const bool can_measure = measurement_.want(id_, true);
    tuning_->spend(now_seconds() - begin);  // CUPTI halts the program when it is opened
    if (!can_measure) {
      leave("single launches can be timed no longer");
      settle_all();
      after_change();
      return {};
    }
    observer_.set_timer(measurement_.timer_name());
    release_tries_ = 0;
  } else if (plan.counted || plan.stage == Stage::Finished) {
    (void)measurement_.want(id_, false);
    if (measure == Measure::Span) compare_without_cupti();
  }
  PassRecord& entry =
      passes_.open(plan.pass, only_region_time_ ? measure : plan.measure, plan.configs);
  entry.counted = plan.counted;
  if (plan.counted && plan.stage == Stage::Table && plan.measure == Measure::Activity)
    entry.row = log::TableRow{plan.number, plan.agreed};
  agreed_ = plan.agreed;
  Watch watch = Watch::Count;
  if (plan.counted && measure == Measure::Activity) watch = Watch::Activity;
  if (plan.counted && measure == Measure::Span) {
    watch = Watch::Span;
    passes_.time_entry();
  }
  entry.is_probed = watch == Watch::Count && open_probe(false);
  if (entry.is_probed) watch = Watch::Span;
  watch_.store(watch, std::memory_order_release);
  settled_changed();
  probation_.entry_begins(now);
  // The findings of a stage are kept when it is over.
  const bool is_next_stage = std::exchange(kept_stage_, plan.stage) != plan.stage;
  keep_so_far(now, is_next_stage && keep_next_ != 0);
  note_tried();
  return plan;
}

void Search::keep_so_far(double now, bool at_once) {
  constexpr double least_period_seconds = 0.1;
  constexpr double least_times_its_cost = 100;
  const bool is_due = keep_next_ != 0 && now >= keep_next_;
  if (stopped_ || tuning_->finished() || (!is_due && keep_next_ != 0 && !at_once)) return;
  const double begin = now_seconds();
  if (is_due || at_once) results_.save_so_far();
  const double cost = now_seconds() - begin;
  keep_next_ = now + std::max(least_period_seconds, least_times_its_cost * cost);
}

void Search::compare_without_cupti() {
  if (!times_.keeps_any() || release_tries_ >= most_release_tries) return;
  release_tries_ = measurement_.cupti().release_early() ? most_release_tries : release_tries_ + 1;
}

void Search::pass_by(double now) {
  if (probation_.has_winners()) begin_probe(now);
  skip();
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
  if (tuning_->wants_results()) measurement_.poll(false);
  drain(false, now);
  tuning_->skip_entries(skipped_.exchange(0));
  const bool counted = plan_entry(now, true).counted;
  after_change();
  return counted;
}

void Search::end(double now) {
  if (watch() == Watch::Nothing) return;
  const std::lock_guard lock(mutex_);
  const std::unique_ptr<PassRecord> record = passes_.close();
  if (record == nullptr) return;
  watch_.store(Watch::Nothing, std::memory_order_release);
  if (probation_.probe().end(record->span_open)) return;
  const auto launched = record->spoiled ? std::vector<SiteIndex>{} : record->sites_launched();
  const auto failed = record->spoiled ? std::vector<SiteIndex>{} : record->sites_failed();
  for (const SiteIndex index : failed)
    note_failed(*sites_[index], sites_[index]->planned(), TrialStatus::LaunchFailed);
  report_runs(*record, launched, failed);
  tuning_->end_pass(record->pass, launched, failed, now);
  has_run_winners_.store(record->counted && record->measure == Measure::Nothing &&
                             !record->spoiled && failed.empty() && tuning_->finished(),
                         std::memory_order_relaxed);
  if (record->counted) {
    record->clock = measurement_.read_clock();
    if (record->clock.throttled) log_.fallback(FallbackReason::Throttled, region_, {}, {});
    const bool no_span =
        record->measure == Measure::Span && clock_ == RegionClock::Entry && !record->span_open;
    if (record->spoiled || no_span) {
      tuning_->add_result(PassResult::none(record->pass), now);
    } else if (const auto given_up = passes_.await(std::move(*record))) {
      tuning_->add_result(PassResult::none(*given_up), now);
    }
  }
  settle_all();
  after_change();
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
  observer_.ran(*record.row, runs);
}

void Search::after_change() {
  if (!stopped_ && !tuning_->finished()) {
    finished_.store(false, std::memory_order_release);
    idle_entries_ = 0;
    return;
  }
  // A search that has nothing to do yet may get sites in the entries to come.
  const bool may_get_more = !stopped_ && (sites_.empty() || sites_.size() != sites_when_finished_);
  if (may_get_more && (sites_.empty() || ever_finished_) && ++idle_entries_ < most_idle_entries) {
    return;
  }
  sites_when_finished_ = sites_.size();
  idle_entries_ = 0;
  ever_finished_ = true;
  note_in_flight();
  if (!stopped_ && results_.save()) saving_ = true;
  if (finished_.load(std::memory_order_relaxed)) return;
  settle_all();
  if (id_ != 0) (void)measurement_.want(id_, false);
  measurement_.cupti().release();
  finished_.store(true, std::memory_order_release);
  if (clock_ == RegionClock::Entry) summarise_new();
}

void Search::hear(std::span<const EndedPass> ended, double now) {
  for (const EndedPass& one : ended) {
    if (!one.result) {
      close_probe(one.pass, one.seconds);
      continue;
    }
    if (!one.survived.empty()) note_survived(one.survived);
    tuning_->add_result(*one.result, now);
  }
}

void Search::drain(bool everything, double now) {
  hear(passes_.take(everything), now);
}

void Search::forget_stream(StreamHandle stream) noexcept {
  const std::lock_guard lock(mutex_);
  passes_.forget_stream(stream);
}

void Search::forget_context(CUcontext context) noexcept {
  const std::lock_guard lock(mutex_);
  passes_.forget_context(context);
}

}  // namespace contextune::intercept
