#include "gpu/process_exit.hpp"

#include <atomic>
#include <cstdlib>

namespace contextune::gpu {
namespace {

std::atomic<bool> exiting{false};
std::atomic<void (*)() noexcept> before_exit{nullptr};

void at_exit() {
  exiting.store(true);
  if (auto* const call = before_exit.load()) call();
}

}  // namespace

bool is_exiting() noexcept {
  return exiting.load();
}

void watch_exit() {
  (void)std::atexit(at_exit);
}

void set_before_exit(void (*call)() noexcept) noexcept {
  before_exit.store(call);
}

}  // namespace contextune::gpu
