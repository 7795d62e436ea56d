#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "intercept/submit/launch_stream.hpp"

namespace contextune::intercept {

/// The last call of the driver by the program, as far as a chained launch may follow it, and the
/// launches that threads are within. Under the lock of whoever launches.
class LastLaunch {
 public:
  /// Whether the call was a launch.
  [[nodiscard]] bool is_launch() const noexcept { return is_launch_; }
  /// Whether a chained launch on the stream would come directly behind it.
  [[nodiscard]] bool may_be_followed_on(const LaunchStream& stream) const noexcept {
    return is_launch_ && may_be_followed_ && stream_ == stream && under_way_ == 0;
  }
  /// Whether a thread is within a launch.
  [[nodiscard]] bool any_under_way() const noexcept { return under_way_ != 0; }

  /// A launch begins, and lets go of the lock meanwhile.
  /// @param may_be_followed by a chained one
  void begin(const LaunchStream& stream, bool may_be_followed,
             std::unique_lock<std::mutex>& lock) noexcept {
    // Another thread's launch that began before may come to the stream after this one.
    is_launch_ = under_way_ == 0;
    stream_ = stream;
    may_be_followed_ = may_be_followed;
    if (!may_be_followed && under_way_ != 0) {
      // A launch under way may be chained, to a kernel that this one must not come between.
      (void)ended_.wait_for(lock, std::chrono::milliseconds(100),
                            [this] { return under_way_ == 0; });
    }
    ++under_way_;
  }
  /// That launch is over.
  void end(bool succeeded) noexcept {
    --under_way_;
    if (under_way_ != 0 || !succeeded) is_launch_ = false;
    ended_.notify_all();
  }

  /// The program calls something else, or a launch comes to the driver in another way.
  void forget() noexcept { is_launch_ = false; }

 private:
  LaunchStream stream_;
  bool is_launch_ = false;
  bool may_be_followed_ = false;
  unsigned under_way_ = 0;  ///< threads within a launch
  std::condition_variable ended_;
};

}  // namespace contextune::intercept
