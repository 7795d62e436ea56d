#pragma once

#include <chrono>

namespace contextune::gpu {

/// The moment at which waiting is given up.
class Deadline {
 public:
  [[nodiscard]] static Deadline in(double seconds) noexcept {
    return Deadline(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                       std::chrono::duration<double>(seconds)));
  }
  [[nodiscard]] bool has_passed() const noexcept { return Clock::now() >= moment_; }

 private:
  using Clock = std::chrono::steady_clock;
  explicit Deadline(Clock::time_point moment) noexcept : moment_(moment) {}
  Clock::time_point moment_;
};

}  // namespace contextune::gpu
