#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

namespace contextune::api {

/// Calls something from a thread of its own where what goes on meanwhile does not end in time.
class Watchdog {
 public:
  /// @param bite null: there is nothing to watch
  Watchdog(void (*bite)(void* user), void* user, double seconds);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  [[nodiscard]] bool has_bitten();

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ends_ = false;
  bool bites_ = false;
  std::thread thread_;
};

}  // namespace contextune::api
