#include "rank/members/shared_member.hpp"

#include <algorithm>
#include <limits>
#include <thread>
#include <utility>

namespace contextune::rank {

SharedMember::Clock::duration SharedMember::to_duration(double seconds) {
  // NaN and the negative are no time at all.
  const double sane = seconds > 0 ? std::min(seconds, 1e8) : 0;
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(sane));
}

std::string SharedMember::absence() {
  const std::lock_guard lock(mutex_);
  return absence_;
}

void SharedMember::set_absence(std::string absence) {
  const std::lock_guard lock(mutex_);
  absence_ = std::move(absence);
}

void SharedMember::wait_for(const Topic& topic, double seconds) {
  const Clock::time_point until = Clock::now() + to_duration(seconds);
  ++waiting_;
  std::unique_lock lock(mutex_);
  while (!ended_ && !member_.is_settled(topic) && !member_.has_patience(topic)) {
    const std::uint32_t seen = changes_.load();
    if (may_spin_) {
      lock.unlock();
      const Clock::time_point enough = std::min(until, Clock::now() + spin_time);
      while (changes_.load() == seen && Clock::now() < enough) std::this_thread::yield();
      lock.lock();
    }
    if (!changed_.wait_until(lock, until, [&] { return changes_.load() != seen; })) break;
  }
  --waiting_;
}

void SharedMember::tell_waiting() noexcept {
  {
    const std::lock_guard lock(mutex_);
    ++changes_;
  }
  changed_.notify_all();
}

void SharedMember::end(const std::string& why) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    Outbox out;
    member_.lose_hub(why, 0, out);
    // Nobody is left to ask for this one.
    member_.tick(std::numeric_limits<double>::infinity(), out);
  } catch (...) {
    // No memory: whoever asks is told that nothing is settled.
  }
  ended_ = true;
}

}  // namespace contextune::rank
