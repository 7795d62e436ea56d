#pragma once

#include <string>
#include <vector>

#include <nvrtc.h>

#include "gpu/driver/driver.hpp"

namespace contextune::gpu {

/// NVRTC's output for a source: machine code, or PTX where NVRTC does not know the architecture.
struct CompiledSource {
  std::string image;
  std::string symbol;  ///< mangled name of the kernel that was asked for
  std::string ptx{};   ///< that the machine code was made from; empty: the image is that
};

/// The run-time compiler of the CUDA toolkit, opened by dlopen. A value; any thread.
class NvrtcLibrary {
 public:
  /// @throws Error if there is no NVRTC; the message lists where it was looked for
  explicit NvrtcLibrary(Dlsym find_symbol);

  /// @param path               of the source, for messages and for #include "..."
  /// @param source             its text
  /// @param options            as on NVRTC's command line
  /// @param name_expression    the kernel: "saxpy" or "tile<32, 8>"
  /// @param compute_capability 90 for 9.0
  /// @throws Error with the first lines of the compiler's log
  [[nodiscard]] CompiledSource compile(const std::string& path, const std::string& source,
                                       const std::vector<std::string>& options,
                                       const std::string& name_expression,
                                       int compute_capability) const;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  [[nodiscard]] bool knows(int compute_capability) const;

// clang-format off
#define CONTEXTUNE_NVRTC_FUNCTIONS(X) \
  X(nvrtcCreateProgram) \
  X(nvrtcDestroyProgram) \
  X(nvrtcAddNameExpression) \
  X(nvrtcCompileProgram) \
  X(nvrtcGetLoweredName) \
  X(nvrtcGetCUBINSize) \
  X(nvrtcGetCUBIN) \
  X(nvrtcGetPTXSize) \
  X(nvrtcGetPTX) \
  X(nvrtcGetProgramLogSize) \
  X(nvrtcGetProgramLog) \
  X(nvrtcGetErrorString) \
  X(nvrtcGetNumSupportedArchs) \
  X(nvrtcGetSupportedArchs)
// clang-format on
#define CONTEXTUNE_NVRTC_MEMBER(name) decltype(&::name) name##_ = nullptr;
  CONTEXTUNE_NVRTC_FUNCTIONS(CONTEXTUNE_NVRTC_MEMBER)
#undef CONTEXTUNE_NVRTC_MEMBER
  std::string path_;
};

}  // namespace contextune::gpu
