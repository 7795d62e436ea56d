#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <contextune/options.hpp>

#include "core/search/timer.hpp"
#include "intercept/host/event_log.hpp"

namespace contextune::intercept {

/// Which work a timed launch is: 16 bits of the search, 32 of its pass, 16 of its site (plus one; 0
/// is work that belongs to no site). Never 0. The upper half of the sites' numbers are launches of
/// graphs and calls that are timed as a span, each in the order of the pass.
struct WorkTag {
  static constexpr std::uint16_t first_graph = 0x8000;
  static constexpr std::uint16_t first_call = 0xc000;
  std::uint16_t search = 0;
  std::uint32_t pass = 0;
  std::uint16_t slot = 0;

  [[nodiscard]] std::uint64_t pack() const noexcept {
    return (std::uint64_t{search} << 48U) | (std::uint64_t{pass} << 16U) | slot;
  }
  [[nodiscard]] static WorkTag unpack(std::uint64_t tag) noexcept {
    return {static_cast<std::uint16_t>(tag >> 48U), static_cast<std::uint32_t>(tag >> 16U),
            static_cast<std::uint16_t>(tag)};
  }
};

/// The process's timers, shared by all searches: CUPTI while anything is measured and the program
/// leaves it to us, else events. Any thread; waits for no GPU work.
class Measurement {
 public:
  struct Timers {
    std::unique_ptr<LaunchTimer> cupti;  ///< null: none, and `why_no_cupti` says why
    std::string why_no_cupti;
    std::unique_ptr<LaunchTimer> events;
    std::unique_ptr<ClockMonitor> clock;
    std::function<std::unique_ptr<SpanTimer>()> make_span_timer;
    /// Takes CUPTI out of the process; false: it refuses. May be empty.
    std::function<bool()> release_cupti;
    /// How long CUPTI stays where it may be wanted again soon: to open it anew halts the program,
    /// by 50 ms on a host of four H200s.
    double release_delay_seconds = 0;
    /// Whether all work of the program on its GPUs is complete; never waits.
    std::function<bool()> gpu_is_idle;
    /// Threads that use the driver only in calls of the program to NCCL.
    std::function<std::vector<pid_t>()> nccl_threads = [] { return std::vector<pid_t>(); };
  };

  Measurement(TimerKind kind, Timers timers, EventLog& log);
  Measurement(const Measurement&) = delete;
  Measurement& operator=(const Measurement&) = delete;

  /// A number for a new search; 0 when there are no more (65535).
  [[nodiscard]] std::uint16_t add_search();

  /// Says whether the search needs single launches timed from now on. False: asked for, and no
  /// timer can be opened (logged).
  bool want(std::uint16_t search, bool wanted);

  /// The timer to tag a launch with; null while none is open. The same one must be told of the
  /// launch's end.
  [[nodiscard]] LaunchTimer* timer() const noexcept {
    return open_.load(std::memory_order_acquire);
  }
  /// As LaunchTimer says, of the one in use or to be used.
  [[nodiscard]] bool tells_graph_kernels_apart() {
    const std::lock_guard lock(mutex_);
    return chosen_ != nullptr && chosen_->tells_graph_kernels_apart();
  }
  /// "cupti" or "events": the one in use, or last used.
  [[nodiscard]] const char* timer_name() const noexcept {
    return name_.load(std::memory_order_relaxed);
  }

  /// Brings in what has arrived. `wait`: the GPU was synchronised, so everything is there.
  /// Otherwise it does nothing when the last call was too short a time ago to be worth its cost.
  void poll(bool wait);
  /// The same in any case, where launches go on: those that are noted wait for their records, and
  /// there is room for LaunchLog::capacity of a thread.
  void make_room();

  /// Moves what has arrived for that search to the end of `work`.
  void take(std::uint16_t search, std::vector<TimedWork>& work);

  /// A search is over. If nobody measures any more and nobody else can be inside the driver, CUPTI
  /// leaves the process, so that launches cost what they did before. CUPTI waits for the GPU then,
  /// which may itself be waiting for this thread. So it leaves here or in a later call of
  /// release_when_idle, where a region begins. The region of the whole process does not begin, so
  /// for it CUPTI leaves where the program waits. Not inside a call of NCCL.
  void release_cupti();
  void release_when_idle() noexcept {
    if (wants_release()) retry_release();
  }
  [[nodiscard]] bool wants_release() const noexcept {
    return release_wanted_.load(std::memory_order_relaxed);
  }
  /// The same at once, however soon it may be wanted again, if that can be. False: CUPTI is still
  /// there.
  bool release_early();
  /// The same at once, where the GPU is known to be idle and the program's threads are held.
  void release_now() noexcept {
    release_due_ = 0;
    release_when_idle();
  }
  /// Nothing more is to come: says if CUPTI stayed because it was not released by then.
  void say_what_stays();

  /// Whether the program has threads beside this one, as far as can be told: not the driver's, ours
  /// or CUPTI's.
  [[nodiscard]] bool program_has_other_threads();
  /// The same but for those of NCCL, which do nothing but what its calls ask for.
  [[nodiscard]] bool program_has_threads_beside_nccl();

  /// Grows when records were lost, to everybody's cost.
  [[nodiscard]] std::uint64_t losses() const noexcept {
    return losses_.load(std::memory_order_acquire);
  }

  /// The program uses CUPTI itself: ours is closed, and events take its place for good.
  void give_up_cupti(const char* entry_point);

  [[nodiscard]] std::unique_ptr<SpanTimer> make_span_timer() const {
    return timers_.make_span_timer();
  }
  /// Lowest clock and any throttling since the last call by anybody.
  [[nodiscard]] ClockReading read_clock();

 private:
  bool open_locked();
  /// Logs what tuning costs beside its passes, in one line.
  void say(const char* action, double begin);
  void close_locked();
  void collect_locked();
  void flush_locked(bool wait);
  void retry_release() noexcept;
  void try_release_locked();
  enum class Readiness { OtherThreads, GpuAtWork, Ready };
  [[nodiscard]] Readiness readiness_locked();
  bool leave_locked();
  [[nodiscard]] bool has_threads_beside(std::vector<pid_t> known) const;

  Timers timers_;
  EventLog& log_;
  std::mutex mutex_;
  std::atomic<LaunchTimer*> open_{nullptr};
  std::atomic<const char*> name_;
  std::atomic<std::uint64_t> losses_{0};
  std::atomic<bool> release_wanted_{false};
  int release_attempts_ = 0;
  int looks_at_threads_ = 0;
  std::atomic<double> release_due_{0};
  bool attached_ = false;  ///< CUPTI was opened since it was last released
  std::vector<pid_t> cupti_threads_;
  LaunchTimer* chosen_ = nullptr;  ///< to be opened when wanted
  std::uint64_t dropped_seen_ = 0;
  std::vector<bool> wanted_;  ///< by search
  std::size_t num_wanted_ = 0;
  std::vector<std::vector<TimedWork>> inboxes_;
  std::vector<TimedWork> arrived_;
  double last_poll_ = 0;
  double poll_cost_ = 0;
};

}  // namespace contextune::intercept
