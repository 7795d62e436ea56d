#pragma once

#include <asio.hpp>
#include <chrono>
#include <functional>
#include <utility>

namespace contextune::rank {

/// The time of a control thread, in seconds since it was made, and what is due in it. Used on that
/// thread only.
class TickTimer {
 public:
  /// @param tick called when a tick is due; nothing else is then, until arm()
  TickTimer(asio::io_context& loop, std::function<void()> tick)
      : timer_(loop), tick_(std::move(tick)) {}
  TickTimer(const TickTimer&) = delete;
  TickTimer& operator=(const TickTimer&) = delete;

  [[nodiscard]] double now() const;
  /// Has a tick come in so many seconds, unless one comes before.
  void arm(double seconds);
  void cancel() { timer_.cancel(); }
  /// A tick is made. @return how late it is
  double begin(double time) noexcept;
  /// Whether a sign of life is due; the next one is so many seconds after it.
  [[nodiscard]] bool heartbeat_is_due(double time, double interval) noexcept;

 private:
  using Clock = std::chrono::steady_clock;

  asio::steady_timer timer_;
  std::function<void()> tick_;
  Clock::time_point started_ = Clock::now();
  double next_tick_ = 0;
  double next_heartbeat_ = 0;
};

}  // namespace contextune::rank
