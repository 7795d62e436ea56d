#include "intercept/measuring/cupti_presence.hpp"

#include <algorithm>
#include <exception>
#include <iterator>

#include "intercept/host/clock.hpp"
#include "intercept/host/thread_census.hpp"

namespace contextune::intercept {
namespace {

// To look costs the program up to 0.1 ms each time.
constexpr int most_attempts = 64;
// A thread of the program or of the driver that has just ended, or begun, may still be in the list.
constexpr int most_looks_at_threads = 3;

}  // namespace

bool CuptiPresence::open(LaunchTimer& timer, std::string& why) {
  if (attached_ != nullptr) return timer.open(why);
  const auto threads_before = thread_ids();
  if (!timer.open(why)) return false;
  attached_ = &timer;
  const auto threads = thread_ids();
  // Some outlive a release.
  std::erase_if(own_threads_,
                [&](pid_t id) { return !std::binary_search(threads.begin(), threads.end(), id); });
  std::set_difference(threads.begin(), threads.end(), threads_before.begin(), threads_before.end(),
                      std::back_inserter(own_threads_));
  return true;
}

void CuptiPresence::release() {
  const std::lock_guard lock(mutex_);
  wanted_.store(attached_ != nullptr && means_.release, std::memory_order_relaxed);
  attempts_ = looks_at_threads_ = 0;
  due_ = now_seconds() + means_.delay_seconds;
  try_locked();
}

void CuptiPresence::try_locked() {
  if (!wanted_.load(std::memory_order_relaxed) || in_use_) return;
  if (now_seconds() < due_.load(std::memory_order_relaxed)) return;
  const Readiness state = readiness_locked();
  if (state == Readiness::OtherThreads && ++looks_at_threads_ < most_looks_at_threads) return;
  if (state == Readiness::GpuAtWork && ++attempts_ < most_attempts) return;
  wanted_.store(false, std::memory_order_relaxed);
  if (state == Readiness::Ready && leave_locked()) return;
  log_.fallback(FallbackReason::CuptiStays, {}, {},
                state == Readiness::GpuAtWork
                    ? "CUPTI was not unloaded: the GPU was not seen idle whenever that was tried."
                    : "");
}

CuptiPresence::Readiness CuptiPresence::readiness_locked() {
  // NCCL's threads serve its calls, and this thread is in none. For a peer they would call the
  // driver only while it connects what it has not used before.
  const std::vector<pid_t> servants = means_.nccl_threads();
  if (has_threads_beside(servants)) return Readiness::OtherThreads;
  return means_.gpu_is_idle() && all_wait_outside_driver(servants) ? Readiness::Ready
                                                                   : Readiness::GpuAtWork;
}

bool CuptiPresence::has_threads_beside(std::vector<pid_t> known) const {
  known.insert(known.end(), own_threads_.begin(), own_threads_.end());
  return other_threads_may_call_driver(known);
}

bool CuptiPresence::leave_locked() {
  const double begin = now_seconds();
  if (!means_.release()) return false;
  log_.lines().write(LogLevel::Info, "timer",
                     {{"action", "release"},
                      {"timer", attached_->name()},
                      {"time_us", (now_seconds() - begin) * 1e6}});
  attached_ = nullptr;
  return true;
}

bool CuptiPresence::release_early() {
  const std::lock_guard lock(mutex_);
  if (attached_ == nullptr || !means_.release) return true;
  if (in_use_ || readiness_locked() != Readiness::Ready || !leave_locked()) return false;
  wanted_.store(false, std::memory_order_relaxed);
  return true;
}

void CuptiPresence::retry() noexcept {
  if (now_seconds() < due_.load(std::memory_order_relaxed)) return;
  try {
    const std::lock_guard lock(mutex_);
    try_locked();
  } catch (const std::exception&) {
    // No memory to look: later, then.
  }
}

void CuptiPresence::say_what_stays() {
  if (wanted_.exchange(false) && now_seconds() >= due_.load())
    log_.fallback(FallbackReason::CuptiStays, {}, {},
                  "CUPTI was not unloaded: no region began later while the GPU was idle.");
}

bool CuptiPresence::program_has_other_threads() {
  const std::lock_guard lock(mutex_);
  return has_threads_beside({});
}

bool CuptiPresence::program_has_threads_beside_nccl() {
  const std::lock_guard lock(mutex_);
  return has_threads_beside(means_.nccl_threads());
}

}  // namespace contextune::intercept
