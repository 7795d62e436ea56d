// The configs of a search that are in flight: see Probation.
#include <algorithm>

#include "intercept/host/clock.hpp"
#include "intercept/tuner/search.hpp"

namespace contextune::intercept {

void Search::note_winners() {
  if (probation_.note_winners()) note_in_flight();
}

void Search::note_tried() {
  const auto winners = tuning_->winners();
  PassRecord& entry = *passes_.entry();
  const auto& configs = entry.configs();
  const std::size_t known =
      std::min({configs.size(), winners.size(), probation_.prospects().num_sites()});
  for (SiteIndex i = 0; entry.counted && i < known; ++i) {
    const std::uint32_t config = configs[i];
    if (config != 0 && config != winners[i] && !probation_.prospects().survived(i, config))
      entry.tried.emplace_back(i, config);
  }
  note_in_flight();
}

void Search::note_survived(const Probation::Trials& trials) {
  probation_.prospects().survive(trials);
  note_winners();
}

void Search::note_in_flight() {
  const bool may_try = !end_.is_stopped() && !tuning_->finished();
  probation_.note(may_try ? passes_.tried() : Probation::Trials{});
}

bool Search::open_probe(bool is_all) {
  if (!probation_.probe().begin(entries_.current(), is_all, reports_.results().earlier().any()))
    return false;
  passes_.time_entry();
  return true;
}

void Search::begin_probe(double now) {
  const std::lock_guard lock(mutex_);
  if (end_.is_stopped() || passes_.entry() != nullptr) return;
  hear(passes_.take_entries(), now);
  note_in_flight();
  if (probation_.winners().empty()) return;
  const PassId pass = entries_.next();
  if (!open_probe(true)) return;
  passes_.open(pass, Measure::Nothing, tuning_->winners());
  watch_.store(Watch::Span, std::memory_order_release);
  settled_changed();
}

void Search::drop_open_entry() {
  passes_.drop_entry();
  probation_.probe().drop();
  watch_.store(Watch::Nothing, std::memory_order_release);
}

void Search::close_probe(PassId pass, double seconds) {
  Probation::Trials survived;
  if (probation_.probe().close(pass, seconds, survived)) note_survived(survived);
}

void Search::overrun() {
  drain(false, now_seconds());
  keep_so_far(now_seconds(), true);
  probation_.get_stuck();
  const std::string next = probation_.hung();
  passes_.forget_awaited();
  tuning_->overrun(now_seconds());
  if (!next.empty()) log_.fallback(FallbackReason::TrialTimeout, region_, {}, next);
  note_in_flight();
  probation_.forget_since();
}

}  // namespace contextune::intercept
