// Arrivals about entries that have ended: times of launches, and of whole entries.
#include <algorithm>
#include <cmath>

#include "gpu/clock/span_timer.hpp"
#include "intercept/tuner/search.hpp"

namespace contextune::intercept {

PassRecord* Search::find_record(std::uint32_t pass) {
  if (open_ != nullptr && open_->counted && static_cast<std::uint32_t>(open_->pass) == pass) {
    return open_.get();
  }
  for (PassRecord& record : pending_) {
    if (static_cast<std::uint32_t>(record.pass) == pass) return &record;
  }
  return nullptr;
}

void Search::collect_spans(double now) {
  for (const SpanTimer::Span& span : spans_.collect()) {
    if (close_probe(PassId{span.tag}, span.seconds)) continue;
    PassRecord* record = find_record(static_cast<std::uint32_t>(span.tag));
    if (record == nullptr || record == open_.get()) continue;
    PassResult result;
    result.pass = record->pass;
    result.sites = record->sites_too_large();
    if (std::isnan(span.seconds) || (record->is_held_up() && result.sites.empty())) {
      if (!std::isnan(span.seconds)) note_survived(record->tried);
      tuning_->add_result(PassResult::none(result.pass), now);
      std::erase_if(pending_, [&](const PassRecord& one) { return one.pass == result.pass; });
      continue;
    }
    result.sm_clock_hz = record->clock.sm_hz;
    result.throttled = record->clock.throttled;
    // Entries that overlap on the GPU take from one end to the next, not from begin to end.
    if (!record->is_held_up()) {
      result.region_seconds =
          span.since_last > 0 ? std::min(span.seconds, span.since_last) : span.seconds;
    }
    note_survived(record->tried);
    tuning_->add_result(result, now);
    std::erase_if(pending_, [&](const PassRecord& one) { return one.pass == result.pass; });
  }
}

void Search::lose_everything(double now) {
  for (const PassRecord& record : pending_) tuning_->add_result(PassResult::none(record.pass), now);
  pending_.clear();
}

void Search::take_arrivals() {
  work_.clear();
  measurement_.take(id_, work_);
  for (const TimedWork& work : work_) {
    const WorkTag tag = WorkTag::unpack(work.tag);
    if (PassRecord* record = find_record(tag.pass)) record->arrived(tag.slot, work);
  }
}

void Search::drain(bool everything, double now) {
  take_arrivals();
  collect_spans(now);
  if (const auto losses = measurement_.losses(); losses != losses_seen_) {
    losses_seen_ = losses;
    return lose_everything(now);
  }
  const bool by_span = clock_ == RegionClock::Entry;
  for (auto at = pending_.begin(); at != pending_.end();) {
    const bool waits_for_span = by_span && at->measure == Measure::Span;
    if (everything && waits_for_span) {
      tuning_->add_result(PassResult::none(at->pass), now);
    } else if (everything || (!waits_for_span && at->complete())) {
      note_survived(at->tried);
      tuning_->add_result(at->result(clock_ == RegionClock::Work), now);
    } else {
      ++at;
      continue;
    }
    at = pending_.erase(at);
  }
}

}  // namespace contextune::intercept
