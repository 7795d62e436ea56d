#pragma once

#include <asio.hpp>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace contextune::rank {

/// How other threads give work to a loop whose descriptors they do not have: to wake it up through
/// one of those, as asio::post does, is for a thread that shares them. Made, used and destroyed on
/// the loop's thread, but ring().
class Doorbell {
 public:
  explicit Doorbell(asio::io_context& loop) : loop_(loop) {}
  ~Doorbell() { stop(); }
  Doorbell(const Doorbell&) = delete;
  Doorbell& operator=(const Doorbell&) = delete;

  /// Starts the thread that wakes the loop up, which has the descriptors of the one that calls.
  void start();
  void stop() noexcept;

  /// Any thread, also before start(): has `work` done on the loop's thread, after what was given
  /// before.
  void ring(std::function<void()> work);
  /// Does at once what is waiting, for a loop that is awake.
  void answer();

 private:
  asio::io_context& loop_;
  std::mutex mutex_;
  std::condition_variable rung_;
  std::deque<std::function<void()>> works_;
  bool wakes_ = false;  ///< the loop was told of what is in `works_`
  bool stops_ = false;
  std::thread thread_;
};

}  // namespace contextune::rank
