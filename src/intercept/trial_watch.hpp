#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>

namespace contextune::intercept {

/// Looks after trials whose passes nobody waits for: where the GPU never ends one, the program's
/// own wait does not come back, and none of our hooks is called any more. One thread for all, which
/// is started with the first. Lives as long as the process; any thread.
class TrialWatch {
 public:
  /// Gives the seconds until it is to be called again; 0: no more.
  using Look = std::function<double()>;

  static TrialWatch& get();

  /// Calls `look` in so many seconds. False: there is no thread for it.
  bool watch(const void* owner, double seconds, Look look);
  /// Nothing of that owner is called any more, nor under way.
  void forget(const void* owner) noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  struct Watched {
    Clock::time_point due;
    Look look;
  };

  [[nodiscard]] bool start_thread();
  void work() noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<const void*, Watched> watched_;
  const void* looking_ = nullptr;
  bool running_ = false;
};

}  // namespace contextune::intercept
