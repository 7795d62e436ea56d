#include "api/process.hpp"

#include <dlfcn.h>

#include <atomic>
#include <exception>

#include "api/declared_kernel.hpp"
#include "intercept/host/link_fault.hpp"

namespace contextune::api {
namespace {

using intercept::Runtime;

Runtime* start_without_frontend() noexcept {
  static std::atomic<bool> tried{false};
  if (tried.load(std::memory_order_acquire)) return nullptr;
  // The frontend attaches this library as soon as it sees a call, unless the calls pass it by.
  if (intercept::has_frontend() && !intercept::driver_comes_first()) return nullptr;
  if (!driver_in_use()) return nullptr;
  if (tried.exchange(true, std::memory_order_acq_rel)) return nullptr;
  return Runtime::start(nullptr);
}

}  // namespace

bool driver_in_use() noexcept {
  void* library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
  if (library == nullptr) return false;
  void* found = dlsym(library, "cuCtxGetCurrent");
  CUcontext context = nullptr;
  const bool ready = found != nullptr &&
                     reinterpret_cast<decltype(&cuCtxGetCurrent)>(found)(&context) == CUDA_SUCCESS;
  dlclose(library);
  return ready;
}

Runtime* runtime() noexcept {
  Runtime* found = Runtime::get();
  if (found == nullptr) found = start_without_frontend();
  if (found != nullptr && has_pending_declarations()) hand_over_declarations(*found);
  return found;
}

const gpu::Driver* driver() noexcept {
  static const gpu::Driver* const opened = []() -> const gpu::Driver* {
    try {
      return new gpu::Driver(gpu::open_driver());
    } catch (const std::exception&) {
      return nullptr;
    }
  }();
  return opened;
}

int current_device() noexcept {
  const gpu::Driver* cuda = driver();
  if (cuda == nullptr) return -1;
  static const bool single = [cuda] {
    int count = 0;
    return cuda->cuDeviceGetCount(&count) == CUDA_SUCCESS && count == 1;
  }();
  if (single) return 0;
  // Asked each time: programs change devices by calls that nobody sees. The handle of the current
  // context could stand for the device, but costs a call of the driver as well. Once that context
  // is gone, the handle may be that of another device's context.
  CUdevice device = 0;
  return cuda->cuCtxGetDevice(&device) == CUDA_SUCCESS ? device : -1;
}

contextune_state current_state() noexcept {
  const Runtime* found = runtime();
  if (found == nullptr) return contextune_state_off;
  return found->sees_launches() ? contextune_state_full : contextune_state_tunables;
}

const char* state_reason() noexcept {
  if (runtime() != nullptr) return Runtime::why_limited();
  const char* why = Runtime::why_limited();
  return *why != '\0' ? why
                      : "the program has not initialised CUDA yet, so there is nothing to tune";
}

}  // namespace contextune::api
