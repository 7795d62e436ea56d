#include "gpu/driver/nvrtc_library.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include <contextune/error.hpp>

#include "gpu/driver/loaded_library.hpp"
#include "gpu/driver/text_excerpt.hpp"

namespace contextune::gpu {
NvrtcLibrary::NvrtcLibrary(Dlsym find_symbol) {
  std::string tried;
  void* library = open_library({"libnvrtc.so.13", "libnvrtc.so.12"},
                               cuda_library_folders("cuda_nvrtc"), path_, tried);
  if (library == nullptr) {
    throw Error(
        "NVRTC was not found (tried " + tried +
        "); install the CUDA Toolkit or the pip package nvidia-cuda-nvrtc, or put the folder of "
        "libnvrtc.so.13 into LD_LIBRARY_PATH");
  }
#define CONTEXTUNE_NVRTC_RESOLVE(name)                                        \
  name##_ = reinterpret_cast<decltype(name##_)>(find_symbol(library, #name)); \
  if (name##_ == nullptr) throw Error(path_ + " has no " #name ": it is too old for contextune");
  CONTEXTUNE_NVRTC_FUNCTIONS(CONTEXTUNE_NVRTC_RESOLVE)
#undef CONTEXTUNE_NVRTC_RESOLVE
}

bool NvrtcLibrary::knows(int compute_capability) const {
  int count = 0;
  if (nvrtcGetNumSupportedArchs_(&count) != NVRTC_SUCCESS || count <= 0) return false;
  std::vector<int> architectures(static_cast<std::size_t>(count));
  if (nvrtcGetSupportedArchs_(architectures.data()) != NVRTC_SUCCESS) return false;
  return std::ranges::find(architectures, compute_capability) != architectures.end();
}

CompiledSource NvrtcLibrary::compile(const std::string& path, const std::string& source,
                                     const std::vector<std::string>& options,
                                     const std::string& name_expression,
                                     int compute_capability) const {
  nvrtcProgram raw = nullptr;
  const auto require = [&](nvrtcResult result, const char* what) {
    if (result == NVRTC_SUCCESS) return;
    throw Error(path + ": " + what + ": " + nvrtcGetErrorString_(result));
  };
  require(nvrtcCreateProgram_(&raw, source.c_str(), path.c_str(), 0, nullptr, nullptr),
          "NVRTC cannot start");
  const auto destroy = [this](nvrtcProgram program) { nvrtcDestroyProgram_(&program); };
  const std::unique_ptr<_nvrtcProgram, decltype(destroy)> program(raw, destroy);
  require(nvrtcAddNameExpression_(raw, name_expression.c_str()), "the kernel's name is not usable");

  const bool native = knows(compute_capability);
  const std::string folder = std::filesystem::path(path).parent_path().string();
  std::vector<std::string> arguments{
      (native ? "--gpu-architecture=sm_" : "--gpu-architecture=compute_") +
          std::to_string(compute_capability),
      "--include-path=" + (folder.empty() ? "." : folder)};
  for (const std::string& libraries : cuda_library_folders("cuda_runtime")) {
    arguments.push_back("--include-path=" + libraries + "/../include");
  }
  arguments.insert(arguments.end(), options.begin(), options.end());
  std::vector<const char*> pointers;
  pointers.reserve(arguments.size());
  for (const std::string& argument : arguments) pointers.push_back(argument.c_str());

  const nvrtcResult result =
      nvrtcCompileProgram_(raw, static_cast<int>(pointers.size()), pointers.data());
  if (result != NVRTC_SUCCESS) {
    std::size_t size = 0;
    std::string log;
    if (nvrtcGetProgramLogSize_(raw, &size) == NVRTC_SUCCESS && size > 1) {
      log.resize(size);
      if (nvrtcGetProgramLog_(raw, log.data()) != NVRTC_SUCCESS) log.clear();
    }
    std::string with;
    for (const std::string& option : options) with += " " + option;
    throw Error(path + ": NVRTC cannot build " + name_expression +
                (with.empty() ? std::string() : " with" + with) + ": " +
                nvrtcGetErrorString_(result) + text_excerpt(log));
  }

  CompiledSource compiled;
  const char* symbol = nullptr;
  require(nvrtcGetLoweredName_(raw, name_expression.c_str(), &symbol),
          "the source has no such kernel");
  compiled.symbol = symbol;
  std::size_t size = 0;
  if (native) {
    require(nvrtcGetCUBINSize_(raw, &size), "NVRTC made no machine code");
    compiled.image.resize(size);
    require(nvrtcGetCUBIN_(raw, compiled.image.data()), "NVRTC made no machine code");
  }
  std::string ptx;
  nvrtcResult found = nvrtcGetPTXSize_(raw, &size);
  if (found == NVRTC_SUCCESS) {
    ptx.resize(size);
    found = nvrtcGetPTX_(raw, ptx.data());
  }
  if (!native) require(found, "NVRTC made no PTX");
  if (found == NVRTC_SUCCESS) (native ? compiled.ptx : compiled.image) = std::move(ptx);
  return compiled;
}

}  // namespace contextune::gpu
