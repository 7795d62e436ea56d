#include "api/watchdog.hpp"

#include <chrono>

#include "host/own_thread.hpp"

namespace contextune::api {

Watchdog::Watchdog(void (*bite)(void* user), void* user, double seconds) {
  if (bite == nullptr) return;
  thread_ = host::own_thread("contextune-dog", [this, bite, user, seconds] {
    std::unique_lock lock(mutex_);
    if (ended_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return ends_; }))
      return;
    bites_ = true;
    lock.unlock();
    bite(user);
  });
}

Watchdog::~Watchdog() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

bool Watchdog::has_bitten() {
  const std::lock_guard lock(mutex_);
  return bites_;
}

}  // namespace contextune::api
