#include "gpu/clock/cupti_library.hpp"

#include <dlfcn.h>
#include <array>
#include <utility>

#include "environment/variables.hpp"
#include "gpu/driver/loaded_library.hpp"

namespace contextune::gpu {
namespace {

// RTLD_NOLOAD first would find a real CUPTI in a process on the simulated driver.
void* open_simulated(const Driver& driver, std::string& path) {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(driver.cuInit), &info) == 0 || info.dli_fname == nullptr) {
    return nullptr;
  }
  path = info.dli_fname;
  path = path.substr(0, path.rfind('/') + 1) + "libcupti.so.13";
  return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

}  // namespace

std::string CuptiLibrary::describe(CUptiResult result) const {
  const char* text = nullptr;
  if (cuptiGetResultString != nullptr && cuptiGetResultString(result, &text) == CUPTI_SUCCESS &&
      text != nullptr) {
    return text;
  }
  return "CUPTI error " + std::to_string(static_cast<int>(result));
}

std::optional<CuptiLibrary> open_cupti(const Driver& driver, std::string& why) {
  CuptiLibrary cupti;
  std::string tried;
  void* library = driver.simulated
                      ? open_simulated(driver, cupti.path)
                      : open_library({"libcupti.so.13", "libcupti.so.12", "libcupti.so"},
                                     cuda_library_folders("cuda_cupti"), cupti.path, tried);
  if (library == nullptr) {
    why = driver.simulated
              ? "the simulated driver has no simulated CUPTI beside it (" + cupti.path + ")"
              : "CUPTI was not found (tried " + tried +
                    "); install the CUDA Toolkit or the pip package nvidia-cuda-cupti, or put the "
                    "folder of libcupti.so.13 into LD_LIBRARY_PATH";
    return std::nullopt;
  }
  const char* missing = nullptr;
#define CONTEXTUNE_CUPTI_RESOLVE(name) \
  cupti.name = reinterpret_cast<decltype(cupti.name)>(driver.find_symbol(library, #name));
#define CONTEXTUNE_CUPTI_RESOLVE_REQUIRED(name) \
  CONTEXTUNE_CUPTI_RESOLVE(name)                \
  if (cupti.name == nullptr) missing = #name;
  CONTEXTUNE_CUPTI_REQUIRED(CONTEXTUNE_CUPTI_RESOLVE_REQUIRED)
  CONTEXTUNE_CUPTI_OPTIONAL(CONTEXTUNE_CUPTI_RESOLVE)
#undef CONTEXTUNE_CUPTI_RESOLVE_REQUIRED
#undef CONTEXTUNE_CUPTI_RESOLVE
  if (missing != nullptr) {
    why =
        cupti.path + " has no " + missing + ": it is too old; install CUPTI of CUDA 12.4 or later";
    return std::nullopt;
  }
  return cupti;
}

std::string profiler_in_process() {
  static constexpr std::array<std::pair<const char*, const char*>, 5> tools{{
      {"libsanitizer-collection", "compute-sanitizer"},
      {"libcuda-injection", "Nsight Compute"},
      {"libToolsInjection", "Nsight Systems"},
      {"libcudadebuggerinjection", "cuda-gdb"},
      {"libnvperf_injection", "an Nsight tool"},
  }};
  for (const auto& [library, tool] : tools) {
    if (!loaded_libraries(library).empty()) return tool;
  }
  const char* injection = variable("CUDA_INJECTION64_PATH");
  if (injection != nullptr && *injection != '\0') {
    return std::string("the tool in CUDA_INJECTION64_PATH (") + injection + ")";
  }
  return {};
}

}  // namespace contextune::gpu
