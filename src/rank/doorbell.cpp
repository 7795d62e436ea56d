#include "rank/doorbell.hpp"

#include <utility>

#include "host/own_thread.hpp"

namespace contextune::rank {

void Doorbell::start() {
  thread_ = host::own_thread("contextune-bell", [this] {
    std::unique_lock lock(mutex_);
    while (true) {
      rung_.wait(lock, [this] { return stops_ || !works_.empty(); });
      if (stops_) return;
      auto works = std::exchange(works_, {});
      lock.unlock();
      for (auto& work : works) asio::post(loop_, std::move(work));
      lock.lock();
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
  auto works = std::exchange(works_, {});
  lock.unlock();
  for (auto& work : works) work();
}

}  // namespace contextune::rank
