// The driver's stand-in tells (launch_spy.cpp): what a kernel writes is put back by a replay.
#include <dlfcn.h>

#include <cstdio>
#include <string>

#include "multi_rank/launched_blocks.hpp"

CUmodule load_kernels(std::size_t) {
  const std::string image = std::string(CONTEXTUNE_TEST_KERNELS) + "/launched_configs.fatbin";
  CUmodule module = nullptr;
  const CUresult result = cuModuleLoad(&module, image.c_str());
  if (result == CUDA_SUCCESS) return module;
  std::fprintf(stderr, "%s cannot be loaded: %d\n", image.c_str(), static_cast<int>(result));
  return nullptr;
}

std::vector<unsigned> launched_blocks() {
  using Blocks = const unsigned*(std::size_t*);
  auto* blocks = reinterpret_cast<Blocks*>(dlsym(RTLD_DEFAULT, "launch_spy_blocks"));
  if (blocks == nullptr) return {};
  std::size_t num_launches = 0;
  const unsigned* first = blocks(&num_launches);
  return {first, first + num_launches};
}
