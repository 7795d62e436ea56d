#include "gpu/driver/launch_log.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <new>
#include <utility>

#include <pthread.h>
#include <unistd.h>

namespace contextune::gpu {
namespace {

constexpr std::size_t ring_size = LaunchLog::capacity;
static_assert((ring_size & (ring_size - 1)) == 0);
constexpr std::size_t max_taken = 16384;

std::atomic<std::uint64_t> next_id{1};

}  // namespace

struct LaunchLog::Thread {
  struct Noted {
    Launch launch;
    std::uint32_t number = 0;  // the kernel's, of the thread that made it
  };

  // A thread that ended leaves its place to the next one with its address.
  pthread_t handle{};
  std::atomic<std::uint32_t> number{0};  // of the one that has it
  std::atomic<std::uint64_t> written{0};
  std::atomic<std::uint64_t> read{0};
  std::array<Noted, ring_size> ring;
  std::deque<Noted> taken;  // of the reading side, in order
  Thread* next = nullptr;
};

LaunchLog::LaunchLog() : id_(next_id.fetch_add(1)) {}

LaunchLog::~LaunchLog() {
  for (Thread* thread = threads_.load(); thread != nullptr;) {
    delete std::exchange(thread, thread->next);
  }
}

LaunchLog::Thread* LaunchLog::this_thread() noexcept {
  // Trivial, so that a thread may end at any time.
  thread_local std::uint64_t owner = 0;
  thread_local Thread* mine = nullptr;
  if (owner == id_) return mine;
  const pthread_t handle = pthread_self();
  Thread* thread = threads_.load(std::memory_order_acquire);
  while (thread != nullptr && pthread_equal(thread->handle, handle) == 0) thread = thread->next;
  if (thread == nullptr) {
    thread = new (std::nothrow) Thread;
    if (thread == nullptr) return nullptr;
    thread->handle = handle;
    thread->next = threads_.load(std::memory_order_relaxed);
    while (!threads_.compare_exchange_weak(thread->next, thread, std::memory_order_release)) {
    }
  }
  thread->number.store(static_cast<std::uint32_t>(gettid()), std::memory_order_relaxed);
  owner = id_;
  mine = thread;
  return thread;
}

bool LaunchLog::add(const Launch& launch) noexcept {
  Thread* thread = this_thread();
  if (thread == nullptr) return false;
  const std::uint64_t written = thread->written.load(std::memory_order_relaxed);
  if (written - thread->read.load(std::memory_order_acquire) == ring_size) return false;
  thread->ring[written % ring_size] = {launch, thread->number.load(std::memory_order_relaxed)};
  thread->written.store(written + 1, std::memory_order_release);
  return true;
}

void LaunchLog::pull(Thread& thread) {
  const std::uint64_t written = thread.written.load(std::memory_order_acquire);
  std::uint64_t read = thread.read.load(std::memory_order_relaxed);
  for (; read != written; ++read) thread.taken.push_back(thread.ring[read % ring_size]);
  thread.read.store(read, std::memory_order_release);
  while (thread.taken.size() > max_taken) thread.taken.pop_front();
}

std::optional<std::uint64_t> LaunchLog::find_tag(std::uint32_t number, std::uint64_t start,
                                                 std::uint64_t end) {
  for (Thread* thread = threads_.load(std::memory_order_acquire); thread != nullptr;
       thread = thread->next) {
    const bool by_handle = static_cast<std::uint32_t>(thread->handle) == number;
    pull(*thread);
    auto noted = std::lower_bound(
        thread->taken.begin(), thread->taken.end(), start,
        [](const Thread::Noted& one, std::uint64_t time) { return one.launch.end < time; });
    for (; noted != thread->taken.end() && noted->launch.begin <= end; ++noted) {
      if (!by_handle && noted->number != number) continue;
      const Launch& launch = noted->launch;
      const bool within_launch = launch.begin <= start && end <= launch.end;
      const bool within_call = start <= launch.begin && launch.end <= end;
      if (within_launch || within_call) return launch.tag;
    }
  }
  return std::nullopt;
}

}  // namespace contextune::gpu
