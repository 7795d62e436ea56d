#pragma once

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

  /// Has the frontend show the calls that a recording holds.
  void watch(bool on) noexcept;

  /// To be called by one thread at a time; its own calls pass.
  void close() noexcept;
  void open() noexcept;

  /// For how long another thread has been kept off, in seconds; 0: none is.
  [[nodiscard]] double waited_seconds() const noexcept;

  /// Returns when the gate is open: at once, or after the pass under way; whoever has closed it
  /// looks at waited_seconds.
  void pass() noexcept {
    if (closed_by_.load(std::memory_order_acquire) != 0) wait();
  }

 private:
  void wait() noexcept;

  const contextune_frontend* frontend_;
  std::atomic<std::uint64_t> closed_by_{0};  ///< a thread; 0: open
  std::atomic<double> waits_since_{0};       ///< when the first of those came; 0: none waits
  std::mutex mutex_;
  std::condition_variable opened_;
};

}  // namespace contextune::intercept
