#include "core/agreement/batch_run.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace contextune {

void BatchRun::start(Batch&& batch, std::uint64_t hash) {
  seen_.assign(batch.passes.size(), {});
  next_ = 0;
  overran_ = false;
  batch_ = std::move(batch);
  batch_.events.clear();
  batch_hash_ = hash;
}

void BatchRun::drop_passes() {
  batch_.passes.clear();
  seen_.clear();
  next_ = 0;
  open_.reset();
}

const Batch::Pass& BatchRun::begin_next(PassId id) {
  seen_[next_].pass = id;
  open_ = next_++;
  ++passes_;
  return batch_.passes[*open_];
}

void BatchRun::end_entry(std::span<const SiteIndex> launched, std::span<const SiteIndex> failed) {
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
    const bool refused = std::ranges::find(failed, here) != failed.end();
    one.config = pass.configs[one.site];
    one.status = refused ? SiteResult::Status::LaunchFailed : SiteResult::Status::Missing;
    seen.report.sites.push_back(one);
  }
}

void BatchRun::abandon_entry() {
  entered_ = false;
  if (!open_) return;
  Seen& seen = seen_[*open_];
  open_.reset();
  seen.ended = seen.in = true;
  seen.report.lost = true;
}

void BatchRun::add_result(const PassResult& result) {
  const auto seen = std::ranges::find_if(
      seen_, [&](const Seen& one) { return one.pass == result.pass && one.ended && !one.in; });
  if (seen == seen_.end()) return;
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

void BatchRun::spend(double seconds, PassId id) {
  for (Seen& seen : seen_)
    if (seen.pass == id && !seen.in)
      seen.report.region_seconds = std::min(0.0, seen.report.region_seconds) - seconds;
}

void BatchRun::overrun() {
  overran_ = true;
  next_ = batch_.passes.size();
  for (Seen& seen : seen_) {
    seen.report.lost = seen.report.lost || !seen.in;
    seen.ended = seen.in = true;
  }
}

void BatchRun::cut_short() {
  abandon_entry();
  for (std::size_t p = next_; p < seen_.size(); ++p) {
    seen_[p].ended = seen_[p].in = true;
    seen_[p].report.lost = true;
  }
  next_ = batch_.passes.size();
}

void BatchRun::give_up_waiting(double now) {
  if (next_ < batch_.passes.size() || is_through()) {
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

bool BatchRun::is_through() const {
  return next_ == batch_.passes.size() && !open_ && std::ranges::all_of(seen_, &Seen::in);
}

void BatchRun::report(BatchReport& report) const {
  report.batch = batch_.number;
  report.batch_hash = batch_hash_;
  report.overran = overran_;
  for (const Seen& seen : seen_) report.passes.push_back(seen.report);
}

const PassReport* BatchRun::report_of(std::uint64_t number) const {
  for (std::size_t p = 0; p < seen_.size(); ++p)
    if (batch_.passes[p].number == number) return &seen_[p].report;
  return nullptr;
}

}  // namespace contextune
