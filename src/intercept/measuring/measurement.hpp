#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <contextune/options.hpp>

#include "core/trials/timer.hpp"
#include "gpu/clock/stream_hold.hpp"
#include "intercept/host/event_log.hpp"
#include "intercept/measuring/cupti_presence.hpp"

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
    std::function<std::unique_ptr<gpu::StreamHold>()> make_stream_hold;
    CuptiPresence::Means presence;
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

  /// CUPTI as it is in the process, opened for the timer or not.
  [[nodiscard]] CuptiPresence& cupti() noexcept { return cupti_; }

  /// Grows when records were lost, to everybody's cost.
  [[nodiscard]] std::uint64_t losses() const noexcept {
    return losses_.load(std::memory_order_acquire);
  }

  /// The program uses CUPTI itself: ours is closed, and events take its place for good.
  void give_up_cupti(const char* entry_point);

  [[nodiscard]] std::unique_ptr<SpanTimer> make_span_timer() const {
    return timers_.make_span_timer();
  }
  [[nodiscard]] std::unique_ptr<gpu::StreamHold> make_stream_hold() const {
    return timers_.make_stream_hold();
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

  Timers timers_;
  EventLog& log_;
  std::mutex mutex_;
  CuptiPresence cupti_;
  std::atomic<LaunchTimer*> open_{nullptr};
  std::atomic<const char*> name_;
  std::atomic<std::uint64_t> losses_{0};
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
