#include "gpu/driver/driver.hpp"

#include <contextune/error.hpp>

#include <dlfcn.h>

namespace contextune::gpu {
namespace {

enum class Need { Required, Optional };

// Entry points that got a second version with the same signature: the first one serves as well.
const char* first_version(std::string_view symbol) {
  return symbol == "cuEventElapsedTime_v2" ? "cuEventElapsedTime" : nullptr;
}

template <typename Function>
void resolve(Function& function, const Driver& driver, const char* symbol, Need need) {
  void* address = driver.find_symbol(driver.library, symbol);
  if (address == nullptr && first_version(symbol) != nullptr) {
    address = driver.find_symbol(driver.library, first_version(symbol));
  }
  if (address == nullptr && need == Need::Required) {
    throw Error(std::string("the CUDA driver has no ") + symbol +
                ": it is too old for contextune; install driver 550 (CUDA 12.4) or later");
  }
  function = reinterpret_cast<Function>(address);
}

}  // namespace

Driver load_driver(void* library, Dlsym find_symbol) {
  Driver driver;
  driver.library = library;
  driver.find_symbol = find_symbol;
#define CONTEXTUNE_SYMBOL_TEXT(name) #name
#define CONTEXTUNE_SYMBOL(name) CONTEXTUNE_SYMBOL_TEXT(name)
#define CONTEXTUNE_DRIVER_FUNCTION(name, need) \
  resolve(driver.name, driver, CONTEXTUNE_SYMBOL(name), Need::need);
#include "gpu/driver/driver_functions.def"
#undef CONTEXTUNE_DRIVER_FUNCTION
#undef CONTEXTUNE_SYMBOL
#undef CONTEXTUNE_SYMBOL_TEXT
  driver.simulated = find_symbol(library, "simcuda_version") != nullptr;
  if (driver.cuDriverGetVersion(&driver.version) != CUDA_SUCCESS) driver.version = 0;
  return driver;
}

Driver open_driver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* text = dlerror();
    throw Error(std::string("no CUDA driver: ") +
                (text != nullptr ? text : "libcuda.so.1 not found") +
                "; install the NVIDIA driver, or put its folder into LD_LIBRARY_PATH");
  }
  return load_driver(library, &dlsym);
}

std::string describe(const Driver& driver, CUresult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (driver.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) {
    return "CUDA error " + std::to_string(static_cast<int>(result));
  }
  if (driver.cuGetErrorString(result, &text) != CUDA_SUCCESS || text == nullptr) return name;
  return std::string(name) + " (" + text + ")";
}

void check(const Driver& driver, CUresult result, std::string_view what) {
  if (result != CUDA_SUCCESS) throw Error(std::string(what) + ": " + describe(driver, result));
}

bool has_ended(const Driver& driver) noexcept {
  int count = 0;
  CUcontext context = nullptr;
  return driver.cuCtxGetCurrent(&context) == CUDA_ERROR_DEINITIALIZED ||
         driver.cuDeviceGetCount(&count) == CUDA_ERROR_DEINITIALIZED;
}

RelaxedCapture::RelaxedCapture(const Driver& driver) noexcept : driver_(driver) {
  if (driver_.cuThreadExchangeStreamCaptureMode != nullptr) {
    (void)driver_.cuThreadExchangeStreamCaptureMode(&mode_);
  }
}

RelaxedCapture::~RelaxedCapture() {
  if (driver_.cuThreadExchangeStreamCaptureMode != nullptr) {
    (void)driver_.cuThreadExchangeStreamCaptureMode(&mode_);
  }
}

CurrentContext::CurrentContext(const Driver& driver, CUcontext context) noexcept : driver_(driver) {
  CUcontext current = nullptr;
  if (context != nullptr && driver_.cuCtxGetCurrent(&current) == CUDA_SUCCESS &&
      current != context) {
    pushed_ = driver_.cuCtxPushCurrent(context) == CUDA_SUCCESS;
  }
}

CurrentContext::~CurrentContext() {
  CUcontext ignored = nullptr;
  if (pushed_) (void)driver_.cuCtxPopCurrent(&ignored);
}

CUcontext context_of(const Driver& driver, CUstream stream) noexcept {
  CUcontext context = nullptr;
  // The legacy and per-thread default streams belong to whatever context is current.
  const bool is_default =
      stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
  if (!is_default && driver.cuStreamGetCtx != nullptr &&
      driver.cuStreamGetCtx(stream, &context) == CUDA_SUCCESS) {
    return context;
  }
  return driver.cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context : nullptr;
}

}  // namespace contextune::gpu
