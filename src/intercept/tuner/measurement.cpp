#include "intercept/tuner/measurement.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "intercept/host/clock.hpp"
#include "intercept/host/thread_census.hpp"

namespace contextune::intercept {
namespace {

// To look costs the program up to 0.1 ms each time.
constexpr int most_release_attempts = 64;
// A thread of the program or of the driver that has just ended, or begun, may still be in the list.
constexpr int most_looks_at_threads = 3;

}  // namespace

Measurement::Measurement(TimerKind kind, Timers timers, EventLog& log)
    : timers_(std::move(timers)), log_(log), name_("events") {
  wanted_.push_back(false);  // there is no search 0
  inboxes_.emplace_back();
  chosen_ = timers_.events.get();
  if (kind == TimerKind::Events) return;
  if (timers_.cupti != nullptr) {
    chosen_ = timers_.cupti.get();
    name_.store(chosen_->name(), std::memory_order_relaxed);
  } else {
    log_.fallback(FallbackReason::NoCupti, {}, {}, timers_.why_no_cupti);
  }
}

std::uint16_t Measurement::add_search() {
  const std::lock_guard lock(mutex_);
  if (wanted_.size() > 0xffffU) return 0;
  wanted_.push_back(false);
  inboxes_.emplace_back();
  return static_cast<std::uint16_t>(wanted_.size() - 1);
}

bool Measurement::want(std::uint16_t search, bool wanted) {
  const std::lock_guard lock(mutex_);
  if (wanted_[search] != wanted) {
    wanted_[search] = wanted;
    num_wanted_ = wanted ? num_wanted_ + 1 : num_wanted_ - 1;
  }
  if (num_wanted_ == 0) {
    if (open_.load(std::memory_order_relaxed) != nullptr) close_locked();
    return true;
  }
  if (open_.load(std::memory_order_relaxed) != nullptr || open_locked()) return true;
  if (wanted) {
    wanted_[search] = false;
    --num_wanted_;
  }
  return !wanted;
}

void Measurement::say(const char* action, double begin) {
  log_.lines().write(LogLevel::Info, "timer",
                     {{"action", action},
                      {"timer", chosen_ != nullptr ? chosen_->name() : ""},
                      {"time_us", (now_seconds() - begin) * 1e6}});
}

bool Measurement::open_locked() {
  std::string why;
  const bool is_cupti = chosen_ != nullptr && chosen_ == timers_.cupti.get();
  const auto threads_before = is_cupti && !attached_ ? thread_ids() : std::vector<pid_t>{};
  const double begin = now_seconds();
  if (chosen_ != nullptr && chosen_->open(why)) {
    say("open", begin);
    if (is_cupti && !attached_) {
      attached_ = true;
      const auto threads = thread_ids();
      // Some outlive a release.
      std::erase_if(cupti_threads_, [&](pid_t id) {
        return !std::binary_search(threads.begin(), threads.end(), id);
      });
      std::set_difference(threads.begin(), threads.end(), threads_before.begin(),
                          threads_before.end(), std::back_inserter(cupti_threads_));
    }
    dropped_seen_ = chosen_->dropped();
    if (timers_.clock != nullptr) timers_.clock->watch(true);
    name_.store(chosen_->name(), std::memory_order_relaxed);
    open_.store(chosen_, std::memory_order_release);
    return true;
  }
  if (is_cupti) {
    log_.fallback(FallbackReason::NoCupti, {}, {}, why);
    chosen_ = timers_.events.get();
    return open_locked();
  }
  log_.fallback(FallbackReason::NoSamples, {}, {},
                "No launch can be timed: " + (why.empty() ? "there is no timer." : why));
  return false;
}

void Measurement::close_locked() {
  LaunchTimer* timer = open_.exchange(nullptr, std::memory_order_acq_rel);
  timer->flush(false);
  timer->collect(arrived_);
  const double begin = now_seconds();
  timer->close();
  say("close", begin);
  collect_locked();
  if (timers_.clock != nullptr) timers_.clock->watch(false);
}

void Measurement::collect_locked() {
  // Both: after a change from one to the other, the old one may still deliver.
  if (timers_.cupti != nullptr) timers_.cupti->collect(arrived_);
  if (timers_.events != nullptr) timers_.events->collect(arrived_);
  for (const TimedWork& work : arrived_) {
    const WorkTag tag = WorkTag::unpack(work.tag);
    if (tag.search != 0 && tag.search < inboxes_.size()) inboxes_[tag.search].push_back(work);
  }
  arrived_.clear();
  if (const LaunchTimer* timer = open_.load(std::memory_order_relaxed)) {
    const std::uint64_t dropped = timer->dropped();
    if (dropped != dropped_seen_) losses_.fetch_add(1, std::memory_order_release);
    dropped_seen_ = dropped;
  }
}

bool Measurement::program_has_other_threads() {
  const std::lock_guard lock(mutex_);
  return has_threads_beside({});
}

bool Measurement::program_has_threads_beside_nccl() {
  const std::lock_guard lock(mutex_);
  return has_threads_beside(timers_.nccl_threads());
}

void Measurement::release_cupti() {
  const std::lock_guard lock(mutex_);
  release_wanted_.store(attached_ && timers_.release_cupti, std::memory_order_relaxed);
  release_attempts_ = looks_at_threads_ = 0;
  release_due_ = now_seconds() + timers_.release_delay_seconds;
  try_release_locked();
}

void Measurement::try_release_locked() {
  if (!release_wanted_.load(std::memory_order_relaxed) || num_wanted_ != 0) return;
  if (now_seconds() < release_due_.load(std::memory_order_relaxed)) return;
  const Readiness state = readiness_locked();
  if (state == Readiness::OtherThreads && ++looks_at_threads_ < most_looks_at_threads) return;
  if (state == Readiness::GpuAtWork && ++release_attempts_ < most_release_attempts) return;
  release_wanted_.store(false, std::memory_order_relaxed);
  if (state == Readiness::Ready && leave_locked()) return;
  log_.fallback(FallbackReason::CuptiStays, {}, {},
                state == Readiness::GpuAtWork
                    ? "CUPTI was not unloaded: the GPU was not seen idle whenever that was tried."
                    : "");
}

Measurement::Readiness Measurement::readiness_locked() {
  // NCCL's threads serve its calls, and this thread is in none. For a peer they would call the
  // driver only while it connects what it has not used before.
  const std::vector<pid_t> servants = timers_.nccl_threads();
  if (has_threads_beside(servants)) return Readiness::OtherThreads;
  return timers_.gpu_is_idle() && all_wait_outside_driver(servants) ? Readiness::Ready
                                                                    : Readiness::GpuAtWork;
}

bool Measurement::has_threads_beside(std::vector<pid_t> known) const {
  known.insert(known.end(), cupti_threads_.begin(), cupti_threads_.end());
  return other_threads_may_call_driver(known);
}

bool Measurement::leave_locked() {
  const double begin = now_seconds();
  if (!timers_.release_cupti()) return false;
  attached_ = false;
  say("release", begin);
  return true;
}

bool Measurement::release_early() {
  const std::lock_guard lock(mutex_);
  if (!attached_ || !timers_.release_cupti) return true;
  if (num_wanted_ != 0 || readiness_locked() != Readiness::Ready || !leave_locked()) return false;
  release_wanted_.store(false, std::memory_order_relaxed);
  return true;
}

void Measurement::retry_release() noexcept {
  if (now_seconds() < release_due_.load(std::memory_order_relaxed)) return;
  try {
    const std::lock_guard lock(mutex_);
    try_release_locked();
  } catch (const std::exception&) {
    // No memory to look: later, then.
  }
}

void Measurement::say_what_stays() {
  if (release_wanted_.exchange(false) && now_seconds() >= release_due_.load())
    log_.fallback(FallbackReason::CuptiStays, {}, {},
                  "CUPTI was not unloaded: no region began later while the GPU was idle.");
}

void Measurement::poll(bool wait) {
  const std::lock_guard lock(mutex_);
  LaunchTimer* timer = open_.load(std::memory_order_relaxed);
  if (timer == nullptr) return collect_locked();
  // Only CUPTI's flush is dear. It costs at most a fifth of the time; that the thread lost the
  // processor in mid-flush once does not count.
  constexpr double share = 5;
  constexpr double most_cost = 1e-3;
  const double pause = share * std::min(poll_cost_, most_cost);
  if (!wait && timer == timers_.cupti.get() && now_seconds() - last_poll_ < pause) return;
  flush_locked(wait);
}

void Measurement::make_room() {
  const std::lock_guard lock(mutex_);
  if (open_.load(std::memory_order_relaxed) != nullptr) flush_locked(false);
}

void Measurement::flush_locked(bool wait) {
  const double begin = now_seconds();
  open_.load(std::memory_order_relaxed)->flush(wait);
  collect_locked();
  last_poll_ = now_seconds();
  poll_cost_ = last_poll_ - begin;
}

void Measurement::take(std::uint16_t search, std::vector<TimedWork>& work) {
  const std::lock_guard lock(mutex_);
  auto& inbox = inboxes_[search];
  work.insert(work.end(), inbox.begin(), inbox.end());
  inbox.clear();
}

void Measurement::give_up_cupti(const char* entry_point) {
  const std::lock_guard lock(mutex_);
  if (timers_.cupti == nullptr || chosen_ != timers_.cupti.get()) return;
  const bool was_open = open_.load(std::memory_order_relaxed) != nullptr;
  if (was_open) close_locked();
  chosen_ = timers_.events.get();
  log_.fallback(FallbackReason::ProgramUsesCupti, {}, {},
                std::string("contextune closed its CUPTI, because the program calls ") +
                    entry_point + "; CUDA events are used from now on.");
  // Passes that are under way have launches timed by neither or by both.
  losses_.fetch_add(1, std::memory_order_release);
  if (was_open) (void)open_locked();
}

ClockReading Measurement::read_clock() {
  const std::lock_guard lock(mutex_);
  return timers_.clock == nullptr ? ClockReading{} : timers_.clock->read();
}

}  // namespace contextune::intercept
