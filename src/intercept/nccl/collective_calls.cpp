#include "intercept/nccl/collective_calls.hpp"

#include <atomic>
#include <cstddef>
#include <new>

namespace contextune::intercept {
namespace {

constinit std::atomic<const gpu::Driver*> driver_of_calls{nullptr};

int current_device() {
  const gpu::Driver* const driver = driver_of_calls.load(std::memory_order_acquire);
  CUdevice device = -1;
  if (driver == nullptr || driver->cuCtxGetDevice(&device) != CUDA_SUCCESS) return -1;
  return device;
}

}  // namespace

collective::CollectiveCalls& collective_calls() noexcept {
  alignas(collective::CollectiveCalls) static std::byte place[sizeof(collective::CollectiveCalls)];
  static auto* const calls = new (place) collective::CollectiveCalls(&current_device);
  return *calls;
}

void set_driver_of_calls(const gpu::Driver& driver) noexcept {
  driver_of_calls.store(&driver, std::memory_order_release);
}

}  // namespace contextune::intercept
