#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "intercept/host/clock.hpp"

namespace contextune::intercept {

/// The watch over launches that are held too long, by a thread of ours. Where they often are, none
/// is held for a while. Under the lock of whoever launches.
class HoldDeadline {
 public:
  [[nodiscard]] bool has_thread() const noexcept { return has_thread_; }
  void set_thread() noexcept { has_thread_ = true; }

  /// A launch is held: the thread looks.
  void wake() noexcept {
    if (!is_asleep_) return;
    is_asleep_ = false;
    wake_.notify_one();
  }
  /// The thread's look found nothing held. Sleeps if that has been so for long, until `wake` or
  /// `stop`.
  void idle(std::unique_lock<std::mutex>& lock) noexcept {
    if (++idle_looks_ <= most_idle_looks) return;
    is_asleep_ = true;
    wake_.wait(lock, [this] { return !is_asleep_; });
    idle_looks_ = 0;
  }
  void stop() noexcept {
    is_asleep_ = false;
    wake_.notify_all();
  }

  /// The thread's look found launches held.
  void busy() noexcept { idle_looks_ = 0; }
  /// Somebody else came first.
  void in_time() noexcept { late_in_a_row_ = 0; }
  /// The thread has to hand over.
  void late() noexcept {
    if (++late_in_a_row_ < most_late_in_a_row) return;
    hold_again_ns_ = monotonic_ns() + pause_ns;
    late_in_a_row_ = 0;
  }
  /// Whether none is to be held now.
  [[nodiscard]] bool pauses(std::uint64_t now) const noexcept { return now < hold_again_ns_; }

 private:
  /// Without anything to watch for so long, the thread sleeps until it is woken.
  static constexpr int most_idle_looks = 80;
  static constexpr std::uint64_t most_late_in_a_row = 8;
  static constexpr std::uint64_t pause_ns = 20'000'000;

  bool has_thread_ = false;
  bool is_asleep_ = false;
  int idle_looks_ = 0;
  std::uint64_t late_in_a_row_ = 0;
  std::uint64_t hold_again_ns_ = 0;
  std::condition_variable wake_;
};

}  // namespace contextune::intercept
