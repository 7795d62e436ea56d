#include "api/watchdog.hpp"

#include <pthread.h>
#include <signal.h>

#include <chrono>

namespace contextune::api {

Watchdog::Watchdog(void (*bite)(void* user), void* user, double seconds) {
  if (bite == nullptr) return;
  // The program's signals are for its own threads.
  sigset_t all;
  sigset_t before;
  (void)sigfillset(&all);
  const bool blocked = pthread_sigmask(SIG_BLOCK, &all, &before) == 0;
  thread_ = std::thread([this, bite, user, seconds] {
    std::unique_lock lock(mutex_);
    if (ended_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return ends_; }))
      return;
    bites_ = true;
    lock.unlock();
    bite(user);
  });
  if (blocked) (void)pthread_sigmask(SIG_SETMASK, &before, nullptr);
  (void)pthread_setname_np(thread_.native_handle(), "contextune-dog");
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
