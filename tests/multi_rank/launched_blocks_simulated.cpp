// The kernels themselves tell: on the simulated driver they are functions of the host.
#include <cstdio>
#include <simcuda/kernel.hpp>
#include <string>

#include "launched_blocks.hpp"

namespace {

std::vector<unsigned> blocks;

void fill(const simcuda_launch* launch) {
  blocks.push_back(launch->block[0]);
  const int n = simcuda::argument<int>(*launch, 0);
  for (int i = 0; i < n; ++i)
    simcuda::argument<int*>(*launch, 2)[i] = simcuda::argument<int>(*launch, 1) + i;
}

// Nothing but a serial part that depends on the block.
void describe(const simcuda_launch* launch, simcuda_work* work) {
  work->block_cycles = 200e3 - 5e3 * launch->block[0] / 32;
}

}  // namespace

CUmodule load_kernels(std::size_t num_kernels) {
  static std::vector<std::string> names;
  static std::vector<simcuda_kernel> kernels;
  static std::vector<const simcuda_kernel*> pointers;
  std::string image = "simcuda image 1\n";
  for (std::size_t k = 0; k < num_kernels; ++k) {
    const std::string& name = names.emplace_back("kernel_" + std::to_string(k));
    image += "kernel " + name + "\naccess " + name + " 2=w\n";
  }
  for (const std::string& name : names)
    kernels.push_back(simcuda::whole_launch_kernel<int, int, int*>(name.c_str(), &fill, &describe));
  for (const simcuda_kernel& kernel : kernels) pointers.push_back(&kernel);
  static simcuda_kernel_table table{SIMCUDA_VERSION, pointers.data(), pointers.size()};
  CUmodule module = nullptr;
  if (simcuda_register_kernels(&table) != 0 ||
      cuModuleLoadData(&module, image.c_str()) != CUDA_SUCCESS) {
    std::fputs("the kernels cannot be loaded\n", stderr);
    return nullptr;
  }
  return module;
}

std::vector<unsigned> launched_blocks(const std::vector<CUfunction>&) {
  return blocks;
}
