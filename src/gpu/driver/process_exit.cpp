#include "gpu/driver/process_exit.hpp"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace contextune::gpu {
namespace {

// Sequentially consistent, both: whoever makes a call sees that the process exits, or is seen.
std::atomic<bool> exiting{false};
std::atomic<int> calls{0};
std::atomic<void (*)() noexcept> before_exit{nullptr};

}  // namespace

bool is_exiting() noexcept {
  return exiting.load();
}

void begin_exit() noexcept {
  exiting.store(true);
  if (auto* const call = before_exit.load()) call();
}

LibraryCall::LibraryCall() noexcept {
  calls.fetch_add(1);
}

LibraryCall::~LibraryCall() {
  calls.fetch_sub(1);
}

bool library_calls_end_within(double seconds) noexcept {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  while (calls.load() != 0) {
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

void watch_exit() {
  (void)on_exit([](int, void*) { begin_exit(); }, nullptr);
}

void set_before_exit(void (*call)() noexcept) noexcept {
  before_exit.store(call);
}

}  // namespace contextune::gpu
