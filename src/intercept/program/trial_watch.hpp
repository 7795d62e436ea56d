#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>

namespace contextune::intercept {

/// Looks after trials whose passes nobody waits for: where the GPU never ends one, the program's
/// own wait does not come back, and none of our hooks is called any more. A single thread looks
/// after all, and is started with the first. Lives as long as the process; any thread, and none
/// waits for a look.
class TrialWatch {
 public:
  /// Whoever has trials. A look keeps it alive; once nobody else does, it is called no more.
  class Watched {
   public:
    Watched() = default;
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;
    virtual ~Watched() = default;
    /// @return seconds until it is to be called again; 0: no more
    [[nodiscard]] virtual double look() noexcept = 0;
  };

  static TrialWatch& get();

  /// Has it look in so many seconds, and not when it was to before. False: there is no thread for
  /// it.
  bool watch(const std::shared_ptr<Watched>& one, double seconds);
  /// Does not call it but for a look that is under way.
  void forget(const Watched& one);

 private:
  using Clock = std::chrono::steady_clock;
  struct Appointment {
    Clock::time_point due;
    std::weak_ptr<Watched> with;
  };

  [[nodiscard]] bool start_thread();
  void work() noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<const Watched*, Appointment> appointments_;
  bool running_ = false;
};

}  // namespace contextune::intercept
