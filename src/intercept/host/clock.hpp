#pragma once

#include <time.h>

#include <chrono>
#include <cstdint>

namespace contextune::intercept {

/// Seconds on a clock that never goes back.
[[nodiscard]] inline double now_seconds() noexcept {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The same clock's nanoseconds.
[[nodiscard]] inline std::uint64_t monotonic_ns() noexcept {
  timespec time{};
  (void)clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace contextune::intercept
