#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/trials/timer.hpp"
#include "intercept/host/event_log.hpp"

namespace contextune::intercept {

/// CUPTI in this process, from when it is opened until it leaves again, so that launches cost what
/// they did before. It leaves where nobody measures and nobody else can be inside the driver. To
/// leave, CUPTI waits for the GPU, which may itself be waiting for this thread; so it never leaves
/// inside a call of NCCL. Any thread.
class CuptiPresence {
 public:
  struct Means {
    /// Takes CUPTI out of the process; false: it refuses. May be empty.
    std::function<bool()> release;
    /// How long CUPTI stays where it may be wanted again soon: to open it anew halts the program,
    /// by 50 ms on a host of four H200s.
    double delay_seconds = 0;
    /// Whether all work of the program on its GPUs is complete; never waits.
    std::function<bool()> gpu_is_idle;
    /// Threads that use the driver only in calls of the program to NCCL.
    std::function<std::vector<pid_t>()> nccl_threads = [] { return std::vector<pid_t>(); };
  };

  /// @param mutex serialises all that is done to the timers: whoever calls open() or set_in_use()
  ///              holds it, and the other functions take it; outlives this
  CuptiPresence(Means means, EventLog& log, std::mutex& mutex)
      : means_(std::move(means)), log_(log), mutex_(mutex) {}

  /// Opens the timer, which is CUPTI's, while it is in use. False: it cannot be, and why.
  [[nodiscard]] bool open(LaunchTimer& timer, std::string& why);
  /// Something is measured from now on, with CUPTI or without; or nothing is, and CUPTI is closed.
  void set_in_use(bool in_use) noexcept { in_use_ = in_use; }

  /// A search is over: CUPTI leaves now or in a later call of release_when_idle, where a region
  /// begins. The region of the whole process does not begin, so for it CUPTI leaves where the
  /// program waits.
  void release();
  void release_when_idle() noexcept {
    if (wants_release()) retry();
  }
  [[nodiscard]] bool wants_release() const noexcept {
    return wanted_.load(std::memory_order_relaxed);
  }
  /// The same at once, however soon it may be wanted again, if that can be. False: CUPTI is still
  /// there.
  [[nodiscard]] bool release_early();
  /// The same at once, where the GPU is known to be idle and the program's threads are held.
  void release_now() noexcept {
    due_ = 0;
    release_when_idle();
  }
  /// Nothing more is to come: says if CUPTI stayed because it was not released by then.
  void say_what_stays();

  /// Whether the program has threads beside this one, as far as can be told: not the driver's, ours
  /// or CUPTI's.
  [[nodiscard]] bool program_has_other_threads();
  /// The same but for those of NCCL, which do nothing but what its calls ask for.
  [[nodiscard]] bool program_has_threads_beside_nccl();

 private:
  enum class Readiness { OtherThreads, GpuAtWork, Ready };

  void retry() noexcept;
  void try_locked();
  [[nodiscard]] Readiness readiness_locked();
  bool leave_locked();
  [[nodiscard]] bool has_threads_beside(std::vector<pid_t> known) const;

  const Means means_;
  EventLog& log_;
  std::mutex& mutex_;
  std::atomic<bool> wanted_{false};  ///< it is to leave
  std::atomic<double> due_{0};
  bool in_use_ = false;
  int attempts_ = 0;
  int looks_at_threads_ = 0;
  const LaunchTimer* attached_ = nullptr;  ///< opened since CUPTI was last released
  std::vector<pid_t> own_threads_;         ///< of CUPTI
};

}  // namespace contextune::intercept
