#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "intercept/host/clock.hpp"

namespace contextune::intercept {

/// A time in which no blocks are measured, since something else is being compared. Any thread.
class MeasuringPause {
 public:
  /// For a moment from now on, but not for more than some seconds in all.
  void begin() noexcept {
    const std::uint64_t now = monotonic_ns();
    std::uint64_t first = 0;
    if (first_ns_.compare_exchange_strong(first, now)) first = now;
    until_ns_.store(std::min(now + moment_ns, first + most_ns), std::memory_order_relaxed);
  }
  [[nodiscard]] bool is_on(std::uint64_t now) const noexcept {
    return now < until_ns_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint64_t moment_ns = 50'000'000;
  static constexpr std::uint64_t most_ns = 5'000'000'000;

  std::atomic<std::uint64_t> first_ns_{0};
  std::atomic<std::uint64_t> until_ns_{0};
};

}  // namespace contextune::intercept
