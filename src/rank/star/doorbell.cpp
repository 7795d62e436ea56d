#include "rank/star/doorbell.hpp"

#include <utility>

#include "host/own_thread.hpp"

namespace contextune::rank {

void Doorbell::start() {
  thread_ = host::own_thread("contextune-bell", [this] {
    std::unique_lock lock(mutex_);
    while (true) {
      rung_.wait(lock, [this] { return stops_ || (!works_.empty() && !wakes_); });
      if (stops_) return;
      // It takes them itself, in their order, even where it has woken up before.
      wakes_ = true;
      asio::post(loop_, [this] { answer(); });
    }
  });
}

void Doorbell::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  rung_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Doorbell::ring(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    works_.push_back(std::move(work));
  }
  rung_.notify_one();
}

void Doorbell::answer() {
  std::unique_lock lock(mutex_);
  wakes_ = false;
  auto works = std::exchange(works_, {});
  lock.unlock();
  for (auto& work : works) work();
}

}  // namespace contextune::rank
