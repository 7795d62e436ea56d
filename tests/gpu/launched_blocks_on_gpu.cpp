// The driver's stand-in tells (launch_spy.cpp): what a kernel writes is put back by a replay.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "gpu/launch_spy.hpp"
#include "multi_rank/launched_blocks.hpp"

CUmodule load_kernels(std::size_t) {
  const std::string image = std::string(CONTEXTUNE_TEST_KERNELS) + "/launched_configs.fatbin";
  CUmodule module = nullptr;
  const CUresult result = cuModuleLoad(&module, image.c_str());
  if (result == CUDA_SUCCESS) return module;
  std::fprintf(stderr, "%s cannot be loaded: %d\n", image.c_str(), static_cast<int>(result));
  return nullptr;
}

std::vector<unsigned> launched_blocks(const std::vector<CUfunction>& kernels) {
  auto* launches =
      reinterpret_cast<decltype(&launch_spy_launches)>(dlsym(RTLD_DEFAULT, "launch_spy_launches"));
  if (launches == nullptr) return {};
  std::size_t num_launches = 0;
  const SpiedLaunch* first = launches(&num_launches);
  std::vector<unsigned> blocks;
  for (const SpiedLaunch* launch = first; launch != first + num_launches; ++launch) {
    // Between two repetitions contextune restores memory with kernels of its own.
    if (std::find(kernels.begin(), kernels.end(), launch->function) != kernels.end())
      blocks.push_back(launch->threads);
  }
  return blocks;
}
