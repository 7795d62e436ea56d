#include "rank/wire/tick_timer.hpp"

#include <utility>

namespace contextune::rank {

double TickTimer::now() const {
  return std::chrono::duration<double>(Clock::now() - started_).count();
}

void TickTimer::arm(double seconds) {
  const double time = now();
  const double at = time + seconds;
  // A tick that comes soon enough stays.
  if (next_tick_ > time && next_tick_ <= at) return;
  next_tick_ = at;
  timer_.expires_at(started_ +
                    std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(at)));
  timer_.async_wait([this](asio::error_code error) {
    if (!error) tick_();
  });
}

double TickTimer::begin(double time) noexcept {
  return time - std::exchange(next_tick_, 0);
}

bool TickTimer::heartbeat_is_due(double time, double interval) noexcept {
  if (time < next_heartbeat_) return false;
  next_heartbeat_ = time + interval;
  return true;
}

}  // namespace contextune::rank
