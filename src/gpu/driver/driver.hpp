#pragma once

#include <string>
#include <string_view>

#include <cuda.h>

namespace contextune::gpu {

/// A dlsym that nobody has replaced.
using Dlsym = void* (*)(void* library, const char* symbol);

/// The driver's own entry points, none of them routed through the frontend, under the names of
/// cuda.h: `driver.cuEventRecord(event, stream)`. Optional ones are null on drivers that lack them.
/// A value; whoever is given a reference keeps it, so it lives as long as the process.
struct Driver {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a name
#define CONTEXTUNE_DRIVER_FUNCTION(name, need) decltype(&::name) name = nullptr;
#include "gpu/driver/driver_functions.def"
#undef CONTEXTUNE_DRIVER_FUNCTION

  void* library = nullptr;
  Dlsym find_symbol = nullptr;
  int version = 0;         ///< as cuDriverGetVersion: 13000 for 13.0
  bool simulated = false;  ///< the library is simcuda
};

/// @param library handle of the loaded libcuda.so.1
/// @throws Error if the library lacks an entry point that contextune cannot do without
[[nodiscard]] Driver load_driver(void* library, Dlsym find_symbol);

/// For a process without the frontend: opens libcuda.so.1.
/// @throws Error if there is no usable driver
[[nodiscard]] Driver open_driver();

/// "CUDA_ERROR_INVALID_VALUE (invalid argument)"
[[nodiscard]] std::string describe(const Driver& driver, CUresult result);

/// @throws Error "<what>: <description>" unless `result` is success
void check(const Driver& driver, CUresult result, std::string_view what);

/// Whether exit() has come to the driver's own handler: no call reaches the GPU any more. Any
/// thread.
[[nodiscard]] bool has_ended(const Driver& driver) noexcept;

/// Lets this thread make calls that would otherwise break another thread's stream capture (event
/// queries, loading code), for as long as it lives. Work on the legacy stream stays forbidden.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const Driver& driver) noexcept;
  ~RelaxedCapture();
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  const Driver& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

/// Makes `context` current on this thread for as long as it lives, if it is not yet.
class CurrentContext {
 public:
  CurrentContext(const Driver& driver, CUcontext context) noexcept;
  ~CurrentContext();
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  const Driver& driver_;
  bool pushed_ = false;
};

/// The context that work on `stream` runs in; null if there is none.
[[nodiscard]] CUcontext context_of(const Driver& driver, CUstream stream) noexcept;

}  // namespace contextune::gpu
