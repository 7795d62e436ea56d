#include "gpu/clock/activity_records.hpp"

namespace contextune::gpu {
namespace {

constexpr std::size_t num_slots = std::size_t{1} << 15;
constexpr std::size_t max_unknown_calls = std::size_t{1} << 12;
constexpr std::size_t max_untied = std::size_t{1} << 14;
// A window this long before the first record keeps times positive when records come out of order.
constexpr std::uint64_t origin_slack = 1'000'000'000;

double seconds(std::uint64_t nanoseconds) {
  return static_cast<double>(nanoseconds) * 1e-9;
}

}  // namespace

ActivityRecords::ActivityRecords() : launches_(num_slots) {}

ActivityRecords::Launch& ActivityRecords::slot(std::uint32_t correlation) {
  return launches_[correlation % num_slots];
}

void ActivityRecords::tie(Launch& launch, const Work& work) {
  if (!launch.seen) {
    launch.seen = true;
    ++launches_seen_;
  }
  TimedWork timed;
  timed.tag = launch.tag;
  timed.start = seconds(work.start - origin_);
  timed.end = seconds(work.end - origin_);
  timed.kernel = work.kernel;
  timed.shape = work.shape;
  tied_.push_back(timed);
}

void ActivityRecords::add_call(std::uint32_t correlation, std::uint32_t thread, std::uint64_t start,
                               std::uint64_t end) {
  const std::lock_guard lock(mutex_);
  if (calls_.size() == most_calls) {
    ++bad_;
    return;
  }
  calls_.push_back(Call{correlation, thread, start, end});
}

void ActivityRecords::resolve(LaunchLog& launches) {
  std::vector<Call> calls;
  {
    const std::lock_guard lock(mutex_);
    calls.assign(unknown_calls_.begin(), unknown_calls_.end());
    calls.insert(calls.end(), calls_.begin(), calls_.end());
    unknown_calls_.clear();
    calls_.clear();
  }
  for (const Call& call : calls) {
    const auto tag = launches.find_tag(call.thread, call.start, call.end);
    const std::lock_guard lock(mutex_);
    if (tag) {
      add_launch(call.correlation, *tag);
      continue;
    }
    // Its thread may be on its way out of the call still, with the launch not yet in the log.
    if (unknown_calls_.size() == max_unknown_calls) unknown_calls_.pop_front();
    unknown_calls_.push_back(call);
  }
}

void ActivityRecords::add_launch(std::uint32_t correlation, std::uint64_t tag) {
  Launch& launch = slot(correlation);
  launch = Launch{correlation, true, false, tag};
  const auto [first, last] = untied_.equal_range(correlation);
  for (auto entry = first; entry != last; ++entry) tie(launch, entry->second);
  untied_.erase(first, last);
}

void ActivityRecords::add_work(std::uint32_t correlation, std::uint64_t start, std::uint64_t end,
                               bool kernel, std::uint64_t shape) {
  const std::lock_guard lock(mutex_);
  if (start == 0 || end < start) {
    ++bad_;
    return;
  }
  if (origin_ == 0) origin_ = start > origin_slack ? start - origin_slack : 1;
  if (start < origin_) {
    ++bad_;
    return;
  }
  const Work work{start, end, kernel, shape};
  Launch& launch = slot(correlation);
  if (launch.known && launch.correlation == correlation) {
    tie(launch, work);
    return;
  }
  // Most of what stays untied is work that nobody asked about: the oldest goes.
  if (untied_order_.size() == max_untied) {
    untied_.erase(untied_order_.front());
    untied_order_.pop_front();
  }
  untied_.emplace(correlation, work);
  untied_order_.push_back(correlation);
}

void ActivityRecords::settle() {
  const std::lock_guard lock(mutex_);
  untied_.clear();
  untied_order_.clear();
  unknown_calls_.clear();
}

void ActivityRecords::forget_correlations() {
  settle();
  const std::lock_guard lock(mutex_);
  calls_.clear();
  launches_.assign(num_slots, Launch{});
}

void ActivityRecords::take(std::vector<TimedWork>& work) {
  const std::lock_guard lock(mutex_);
  work.insert(work.end(), tied_.begin(), tied_.end());
  tied_.clear();
}

std::uint64_t ActivityRecords::launches_seen() const {
  const std::lock_guard lock(mutex_);
  return launches_seen_;
}

std::uint64_t ActivityRecords::bad() const {
  const std::lock_guard lock(mutex_);
  return bad_;
}

}  // namespace contextune::gpu
