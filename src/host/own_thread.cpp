#include "host/own_thread.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <mutex>
#include <utility>
#include <vector>

namespace contextune::host {
namespace {

/// Threads of ours that have begun and have not named themselves.
struct UnnamedThreads {
  std::mutex mutex;
  std::vector<pid_t> ids;

  static UnnamedThreads& get() {
    static auto* const threads = new UnnamedThreads;  // threads end after it would have gone
    return *threads;
  }
};

/// 0: it has ended.
pid_t id_of(pthread_t thread) noexcept {
  // The C library tells the number of a thread only as the clock of its time, which is made of it.
  clockid_t clock = 0;
  return pthread_getcpuclockid(thread, &clock) == 0 ? static_cast<pid_t>(~(clock >> 3)) : 0;
}

}  // namespace

OwnThreadStart::OwnThreadStart() {
  UnnamedThreads& threads = UnnamedThreads::get();
  threads.mutex.lock();
  try {
    threads.ids.reserve(threads.ids.size() + 1);  // begun() has no way to fail
  } catch (...) {
    threads.mutex.unlock();
    throw;
  }
}

OwnThreadStart::~OwnThreadStart() {
  UnnamedThreads::get().mutex.unlock();
}

void OwnThreadStart::begun(pthread_t thread) noexcept {
  UnnamedThreads::get().ids.push_back(id_of(thread));
}

void name_this_thread(const char* name) noexcept {
  // A longer one would be refused, and the thread taken for the program's.
  char cut[16] = {};
  (void)std::strncpy(cut, name, sizeof cut - 1);
  (void)pthread_setname_np(pthread_self(), cut);
  UnnamedThreads& threads = UnnamedThreads::get();
  const std::lock_guard lock(threads.mutex);
  std::erase(threads.ids, static_cast<pid_t>(syscall(SYS_gettid)));
}

bool is_unnamed_own_thread(pid_t thread) {
  UnnamedThreads& threads = UnnamedThreads::get();
  const std::lock_guard lock(threads.mutex);
  return std::find(threads.ids.begin(), threads.ids.end(), thread) != threads.ids.end();
}

std::thread own_thread(const char* name, std::function<void()> body) {
  const SignalsBlocked blocked;
  OwnThreadStart start;
  std::thread thread([name, body = std::move(body)] {
    // By itself: another thread would open a file to name it.
    name_this_thread(name);
    body();
  });
  start.begun(thread.native_handle());
  return thread;
}

void start_own_thread(const char* name, std::function<void()> body) {
  own_thread(name, std::move(body)).detach();
}

}  // namespace contextune::host
