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

  /// Returns when the gate is open: at once, or after a replay, which has deadlines of its own.
  void pass() noexcept {
    if (closed_by_.load(std::memory_order_acquire) != 0) wait();
  }

 private:
  void wait() noexcept;

  const contextune_frontend* frontend_;
  std::atomic<std::uint64_t> closed_by_{0};  ///< a thread; 0: open
  std::mutex mutex_;
  std::condition_variable opened_;
};

}  // namespace contextune::intercept
