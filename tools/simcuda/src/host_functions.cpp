#include "host_functions.hpp"

#include <pthread.h>

#include <thread>
#include <utility>

namespace simcuda {

void start_driver_thread(const char* name, std::function<void()> work) {
  std::thread thread(std::move(work));
  (void)pthread_setname_np(thread.native_handle(), name);
  thread.detach();
}

HostFunctionThread& HostFunctionThread::instance() {
  static auto* const thread = new HostFunctionThread;
  return *thread;
}

void HostFunctionThread::enqueue(CUhostFn function, void* data, std::function<void()> finished) {
  const std::lock_guard lock(mutex_);
  queue_.push_back({function, data, std::move(finished)});
  if (!started_) {
    started_ = true;
    start_driver_thread("cuda-sim-host", [this] { work(); });
  }
  added_.notify_one();
}

void HostFunctionThread::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    added_.wait(lock, [this] { return !queue_.empty(); });
    const Entry entry = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    entry.function(entry.data);
    entry.finished();
    lock.lock();
  }
}

}  // namespace simcuda
