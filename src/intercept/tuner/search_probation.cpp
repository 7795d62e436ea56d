// Winners that nothing in this process has tried: what an earlier run or another rank has found
// runs at once, and is in flight until the GPU has ended an entry with it.
#include <algorithm>
#include <cmath>
#include <utility>

#include "gpu/clock/span_timer.hpp"
#include "intercept/host/clock.hpp"
#include "intercept/tuner/search.hpp"

namespace contextune::intercept {
namespace {

// Numbers of entries that are no passes.
constexpr std::uint64_t first_probe = std::uint64_t{1} << 30U;

}  // namespace

bool Search::is_used(SiteIndex index) const {
  const Site& site = *sites_[index];
  const std::uint32_t config = site.settled();
  const auto& survived = prospects_[index].survived;
  return !stopped_ && config != 0 && !site.pinned && config < survived.size() && !survived[config];
}

void Search::note_used(SiteIndex index) {
  if (index >= prospects_.size() || !is_used(index)) return;
  used_.emplace_back(index, sites_[index]->settled());
  on_probation_.store(true, std::memory_order_relaxed);
  if (used_.size() == 1) store_.probation_begins();
  results_.add_in_flight(index, sites_[index]->settled());
  in_flight_since_ = now_seconds();
}

void Search::note_used() {
  const Trials before = std::exchange(used_, {});
  for (SiteIndex i = 0; i < std::min(sites_.size(), prospects_.size()); ++i)
    if (is_used(i)) used_.emplace_back(i, sites_[i]->settled());
  on_probation_.store(!used_.empty(), std::memory_order_relaxed);
  if (used_ == before) return;
  if (used_.empty()) store_.probation_ends();
  if (before.empty()) store_.probation_begins();
  note_in_flight();
}

bool Search::open_probe() {
  const bool expects = probes_ == 0 && results_.store_knows();
  if (probe_ || (used_.empty() && !expects)) return false;
  if (spans_ == nullptr) spans_ = measurement_.make_span_timer();
  probe_ = Probe{first_probe + probes_++, true, {}};
  return true;
}

void Search::begin_probe(double now) {
  const std::lock_guard lock(mutex_);
  if (stopped_ || open_ != nullptr) return;
  collect_spans(now);
  note_in_flight();
  if (used_.empty() || !open_probe()) return;
  open_ = std::make_unique<PassRecord>(probe_->tag, Measure::Nothing, tuning_->winners());
  open_->counted = false;
  pass_.store(static_cast<std::uint32_t>(probe_->tag), std::memory_order_relaxed);
  touched_.clear();
  watch_.store(Watch::Span, std::memory_order_release);
  settled_changed();
}

void Search::drop_open_entry() {
  open_.reset();
  if (probe_ && probe_->open) probe_.reset();
  watch_.store(Watch::Nothing, std::memory_order_release);
}

bool Search::end_probe(const PassRecord& record) {
  if (!probe_ || !probe_->open) return false;
  const bool is_all = record.pass == probe_->tag;  // the tuning knows nothing of that entry
  probe_->open = false;
  probe_->used = used_;
  if (!record.span_open) probe_.reset();
  return is_all;
}

bool Search::close_probe(std::uint64_t tag, double seconds) {
  if (!probe_ || probe_->tag != tag) return false;
  if (std::isfinite(seconds)) note_survived(probe_->used);
  probe_.reset();
  return true;
}

void Search::check_probation() {
  const std::lock_guard lock(mutex_);
  // Until it has finished, entries look.
  if (!probe_ || probe_->open || !finished()) return;
  collect_spans(0);
  note_in_flight();
}

}  // namespace contextune::intercept
