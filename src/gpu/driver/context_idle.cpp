#include "gpu/driver/context_idle.hpp"

#include <chrono>

namespace contextune::gpu {
namespace {

// An idle GPU takes a few microseconds to come to the record of an event.
constexpr auto time_of_a_record = std::chrono::microseconds(100);

}  // namespace

bool is_idle(const Driver& driver, CUcontext context) noexcept {
  if (driver.cuCtxRecordEvent == nullptr) return false;
  const CurrentContext current(driver, context);
  const RelaxedCapture relaxed(driver);
  CUevent event = nullptr;
  if (driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return false;
  bool idle = false;
  if (driver.cuCtxRecordEvent(context, event) == CUDA_SUCCESS) {
    const auto until = std::chrono::steady_clock::now() + time_of_a_record;
    do {
      idle = driver.cuEventQuery(event) == CUDA_SUCCESS;
    } while (!idle && std::chrono::steady_clock::now() < until);
  }
  (void)driver.cuEventDestroy(event);
  return idle;
}

}  // namespace contextune::gpu
