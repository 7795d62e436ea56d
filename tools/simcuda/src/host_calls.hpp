#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

namespace simcuda {

/// Host functions of one stream that were enqueued and not yet run. Thread-safe; waits must not
/// hold the driver's lock, because the functions may take locks that a waiting program holds.
struct HostCalls {
  std::mutex mutex;
  std::condition_variable finished;
  std::uint64_t enqueued_count = 0;
  std::uint64_t finished_count = 0;

  void wait_for(std::uint64_t count) {
    std::unique_lock lock(mutex);
    finished.wait(lock, [&] { return finished_count >= count; });
  }
  [[nodiscard]] std::uint64_t enqueued() {
    const std::lock_guard lock(mutex);
    return enqueued_count;
  }
  [[nodiscard]] bool idle_since(std::uint64_t count) {
    const std::lock_guard lock(mutex);
    return finished_count >= count;
  }
};

}  // namespace simcuda
