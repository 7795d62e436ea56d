#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

#include "cuda_api.hpp"

namespace simcuda {

/// Starts a thread that is never joined. The threads of a real driver have names that begin with
/// "cuda", by which they are told from the program's; this one has its name before anybody can see
/// it.
void start_driver_thread(const char* name, std::function<void()> work);

/// The one thread of the driver on which host functions run, in the order in which they are handed
/// over. Thread-safe. Functions run without the driver's lock.
class HostFunctionThread {
 public:
  static HostFunctionThread& instance();

  /// Runs `function(data)` and then `finished()`, later.
  void enqueue(CUhostFn function, void* data, std::function<void()> finished);

 private:
  struct Entry {
    CUhostFn function;
    void* data;
    std::function<void()> finished;
  };
  [[noreturn]] void work();

  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<Entry> queue_;
  bool started_ = false;
};

}  // namespace simcuda
