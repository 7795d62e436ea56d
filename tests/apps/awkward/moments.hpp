#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <semaphore>
#include <thread>

#include <cuda.h>

namespace awkward {

/// Has things done in the middle of a kernel: a simulated one is a function of the program, so no
/// sleep has to guess when it runs. The driver is locked meanwhile, so the action calls nothing of
/// it.
class Moments {
 public:
  static Moments& get();

  /// In the middle of the program's next launch.
  void in_next_launch(std::function<void()> action) { in_next_launch_ = std::move(action); }
  /// In the middle of the first launch that the program did not make: while its region is
  /// repeated, which is told on the standard error.
  void when_repeated(std::function<void()> action) { when_repeated_ = std::move(action); }
  /// In the middle of each of those.
  void at_every_repetition(std::function<void()> action) {
    at_every_repetition_ = std::move(action);
  }
  /// After the region: does it now if nothing was repeated.
  void unless_repeated();

  void program_launches() { ++made_; }
  void kernel_runs();

 private:
  std::function<void()> in_next_launch_;
  std::function<void()> when_repeated_;
  std::function<void()> at_every_repetition_;
  std::atomic<int> made_{0};
  std::atomic<int> run_{0};
};

/// A thread with work that begins when it is told to.
class Helper {
 public:
  /// @param work with that context current
  Helper(CUcontext context, std::function<void()> work);

  /// Lets the work begin, and returns when it has ended or is kept waiting somewhere.
  void begin();
  void join() { thread_.join(); }
  [[nodiscard]] std::thread& thread() noexcept { return thread_; }

 private:
  std::atomic<pid_t> id_{0};
  std::atomic<bool> begun_{false};
  std::binary_semaphore may_begin_{0};
  std::thread thread_;
};

/// Waits until `condition` holds, at most for ten seconds.
void wait_until(const std::function<bool()>& condition);

/// Whether a thread of this process has such a name.
[[nodiscard]] bool has_thread(const char* name);

}  // namespace awkward
