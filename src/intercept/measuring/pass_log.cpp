#include "intercept/measuring/pass_log.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "gpu/driver/launch_log.hpp"
#include "intercept/measuring/measurement.hpp"

namespace contextune::intercept {
namespace {

// Core gives a result up long before.
constexpr std::size_t most_awaited = 256;

}  // namespace

PassLog::PassLog(Measurement& measurement, std::uint16_t search, RegionClock clock)
    : measurement_(measurement),
      search_(search),
      clock_(clock),
      spans_(measurement),
      losses_seen_(measurement.losses()) {}

PassRecord& PassLog::open(PassId pass, Measure measure, std::span<const std::uint32_t> configs) {
  entry_ = std::make_unique<PassRecord>(pass, measure, configs);
  spans_.begin_entry();
  unread_launches_ = 0;
  return *entry_;
}

std::unique_ptr<PassRecord> PassLog::close() {
  if (entry_ != nullptr) spans_.end_entry(*entry_);
  return std::move(entry_);
}

void PassLog::expect_time() {
  if (++unread_launches_ < gpu::LaunchLog::capacity / 2) return;
  unread_launches_ = 0;
  measurement_.make_room();
  read_times();
}

std::optional<PassId> PassLog::await(PassRecord record) {
  awaited_.push_back(std::move(record));
  if (awaited_.size() <= most_awaited) return std::nullopt;
  const PassId given_up = awaited_.front().pass;
  awaited_.pop_front();
  return given_up;
}

PassRecord* PassLog::find(std::uint32_t pass) noexcept {
  if (entry_ != nullptr && entry_->counted && static_cast<std::uint32_t>(entry_->pass) == pass)
    return entry_.get();
  for (PassRecord& record : awaited_)
    if (static_cast<std::uint32_t>(record.pass) == pass) return &record;
  return nullptr;
}

void PassLog::read_times() {
  work_.clear();
  measurement_.take(search_, work_);
  for (const TimedWork& work : work_) {
    const WorkTag tag = WorkTag::unpack(work.tag);
    if (PassRecord* record = find(tag.pass)) record->arrived(tag.slot, work);
  }
}

EndedPass PassLog::ended(const PassRecord& record, const SpanTimer::Span& span) const {
  EndedPass ended{record.pass, PassResult::none(record.pass), span.seconds, {}};
  if (std::isnan(span.seconds)) return ended;
  ended.survived = record.tried;
  std::vector<SiteResult> too_large = record.sites_too_large();
  if (record.is_held_up() && too_large.empty()) return ended;
  PassResult result;
  result.pass = record.pass;
  result.sites = std::move(too_large);
  result.sm_clock_hz = record.clock.sm_hz;
  result.throttled = record.clock.throttled;
  // Entries that overlap on the GPU take from one end to the next, not from begin to end.
  if (!record.is_held_up()) {
    result.region_seconds =
        span.since_last > 0 ? std::min(span.seconds, span.since_last) : span.seconds;
  }
  if (row_site_ != no_site) {
    if (const auto share = record.share_of_calls(row_site_, result.region_seconds))
      result.sites.push_back(*share);
    ended.row = record.row;
  }
  ended.result = std::move(result);
  return ended;
}

std::vector<EndedPass> PassLog::take_entries() {
  std::vector<EndedPass> all;
  for (const SpanTimer::Span& span : spans_.collect()) {
    const PassRecord* const record = find(static_cast<std::uint32_t>(span.tag));
    if (record == nullptr || record->is_probed) {
      all.push_back({PassId{span.tag}, std::nullopt, span.seconds, {}});
      continue;
    }
    if (record == entry_.get()) continue;
    all.push_back(ended(*record, span));
    std::erase_if(awaited_, [&](const PassRecord& one) { return one.pass == all.back().pass; });
  }
  return all;
}

std::vector<EndedPass> PassLog::take(bool everything) {
  read_times();
  std::vector<EndedPass> all = take_entries();
  const std::uint64_t losses = measurement_.losses();
  const bool is_lost = std::exchange(losses_seen_, losses) != losses;
  for (auto at = awaited_.begin(); at != awaited_.end();) {
    const bool by_span = clock_ != RegionClock::Work && at->measure == Measure::Span;
    if (is_lost || (everything && by_span)) {
      all.push_back({at->pass, PassResult::none(at->pass), 0, {}});
    } else if (everything || (!by_span && at->complete())) {
      const bool is_mean = clock_ == RegionClock::Work;
      if (at->complete()) spans_.hold().heard(*at);
      all.push_back({at->pass, at->result(is_mean), 0, at->tried});
      if (!is_mean) all.back().row = at->row;
    } else {
      ++at;
      continue;
    }
    at = awaited_.erase(at);
  }
  return all;
}

PassRecord::Trials PassLog::tried() const {
  PassRecord::Trials all;
  for (const PassRecord& record : awaited_)
    all.insert(all.end(), record.tried.begin(), record.tried.end());
  if (entry_ != nullptr) all.insert(all.end(), entry_->tried.begin(), entry_->tried.end());
  return all;
}

}  // namespace contextune::intercept
