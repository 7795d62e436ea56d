#pragma once

#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "preload/contextune_abi.h"

namespace contextune::intercept {

/// Keeps the program's other threads off the GPU while a region is replayed: memory is then not
/// what they have to see. Any thread; nothing throws.
class ReplayGate {
 public:
  /// @param frontend null: calls are not seen, and nothing can be kept off
  explicit ReplayGate(const contextune_frontend* frontend) noexcept : frontend_(frontend) {}

  /// Only one region at a time is recorded and repeated: from before it looks at memory until all
  /// is open again.
  [[nodiscard]] bool claim() noexcept { return !claimed_.exchange(true); }
  void release() noexcept { claimed_.store(false); }

  /// Has the frontend show the calls that a recording holds.
  void watch(bool on) noexcept;
  /// Has it show copies and fills alone, as those of a tunable are timed, and some wait for the
  /// GPU; in pairs.
  void show_copies(bool on) noexcept;
  /// Has it show NCCL's groups and messages between two ranks. The frontend begins as if this had
  /// been asked for once; otherwise in pairs.
  void show_messages(bool on) noexcept;
  /// Whether this thread is inside a call of NCCL that was not shown.
  [[nodiscard]] bool is_in_message() const noexcept;
  /// Whether another one is, as seen after others_left().
  [[nodiscard]] bool any_in_message() const noexcept;

  /// By whoever has claimed it; its own calls pass. Signals that are not of its own making wait
  /// until the gate is open: their handlers would see memory that the program has never had.
  void close() noexcept;
  void open() noexcept;
  /// Closes it for as long as this lives.
  class Closed {
   public:
    explicit Closed(ReplayGate& gate) noexcept : gate_(gate) { gate_.close(); }
    ~Closed() { gate_.open(); }
    Closed(const Closed&) = delete;
    Closed& operator=(const Closed&) = delete;

   private:
    ReplayGate& gate_;
  };
  /// Waits until the others have left the calls of the driver that they were in when it was closed.
  /// @return false: not in that time, or there is no frontend that knows
  [[nodiscard]] bool others_left(double seconds) noexcept;
  [[nodiscard]] bool is_open() const noexcept {
    return closed_by_.load(std::memory_order_acquire) == 0;
  }
  /// Whether such a signal waits that is not ignored.
  [[nodiscard]] bool signal_waits() const noexcept;
  /// Lets those through that end the process without running anything of the program: whoever has
  /// closed it waits for long, and may be waiting in vain.
  void let_fatal_signals_through() const noexcept;

  /// For how long another thread has been kept off, in seconds; 0: none is.
  [[nodiscard]] double waited_seconds() const noexcept;

  /// Returns when the gate is open: at once, or after the pass under way; whoever has closed it
  /// looks at waited_seconds. If that one never opens it again, the process is stopped.
  void pass() noexcept {
    if (!is_open()) wait();
  }
  /// Whether another thread has closed it. In one order with what else this one makes known.
  [[nodiscard]] bool keeps_out() const noexcept;
  /// Whether it is open, or opens in that time; at once where this thread has closed it.
  [[nodiscard]] bool opens_within(double seconds) noexcept;
  /// The same as pass(), for a thread of the program that is about to call NCCL.
  void wait_until_open() noexcept;

 private:
  void wait() noexcept;

  const contextune_frontend* frontend_;
  std::atomic<bool> claimed_{false};
  std::atomic<std::uint64_t> closed_by_{0};  ///< a thread; 0: open
  sigset_t signals_{};                       ///< that the thread blocked before it closed the gate
  std::atomic<double> waits_since_{0};       ///< when the first of those came; 0: none waits
  std::mutex mutex_;
  std::condition_variable opened_;
};

}  // namespace contextune::intercept
