#include "gpu/process_exit.hpp"

#include <atomic>
#include <cstdlib>

namespace contextune::gpu {
namespace {

std::atomic<bool> exiting{false};

}  // namespace

bool is_exiting() noexcept {
  return exiting.load();
}

void watch_exit() {
  (void)std::atexit([] { exiting.store(true); });
}

}  // namespace contextune::gpu
