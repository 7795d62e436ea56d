#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "rank/members/agreement_member.hpp"

namespace contextune::rank {

/// This rank's member, shared by the control thread and those that say something or wait for what
/// is agreed on. Any thread.
class SharedMember {
 public:
  using Clock = std::chrono::steady_clock;

  /// A thread that waits asks again and again for so long before it sleeps. Waking up takes longer
  /// than most answers do, and each answer takes several threads that wake one another.
  static constexpr std::chrono::microseconds spin_time{300};

  SharedMember(Member member, bool may_spin) : may_spin_(may_spin), member_(std::move(member)) {}
  SharedMember(const SharedMember&) = delete;
  SharedMember& operator=(const SharedMember&) = delete;

  /// Does something to the member, under the mutex.
  template <class Use>
  auto with(Use use) {
    const std::lock_guard lock(mutex_);
    return use(member_);
  }
  /// The agreeing has ended, and nothing is sent any more. From within with() only.
  [[nodiscard]] bool has_ended() const noexcept { return ended_; }

  /// Which ranks have not been there yet, and why; a clause. Empty: all have.
  [[nodiscard]] std::string absence();
  void set_absence(std::string absence);

  /// Waits until the topic is settled or the time is over.
  void wait_for(const Topic& topic, double seconds);
  /// Whether a thread waits that asks again and again.
  [[nodiscard]] bool spins() const noexcept {
    return may_spin_ && waiting_.load(std::memory_order_relaxed) > 0;
  }
  /// Has those that wait look again.
  void tell_waiting() noexcept;

  /// The hub is gone, and nobody is left to ask for this one: settles all, and nothing is sent any
  /// more. Wakes nobody up.
  void end(const std::string& why) noexcept;
  /// Unless it has ended, has `ask` called under the mutex and waits for that end; false: it has
  /// not come within `seconds`.
  template <class Ask>
  [[nodiscard]] bool wait_for_end(double seconds, Ask ask) {
    std::unique_lock lock(mutex_);
    if (ended_) return true;
    ask();
    return changed_.wait_until(lock, Clock::now() + to_duration(seconds), [&] { return ended_; });
  }

 private:
  [[nodiscard]] static Clock::duration to_duration(double seconds);

  const bool may_spin_;
  std::atomic<int> waiting_{0};            // threads in wait_for
  std::mutex mutex_;                       // of the next five
  std::atomic<std::uint32_t> changes_{0};  // so many times others were told
  std::condition_variable changed_;
  Member member_;
  bool ended_ = false;
  std::string absence_;
};

}  // namespace contextune::rank
