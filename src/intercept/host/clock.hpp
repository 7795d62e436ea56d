#pragma once

#include <chrono>

namespace contextune::intercept {

/// Seconds on a clock that never goes back.
[[nodiscard]] inline double now_seconds() noexcept {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace contextune::intercept
