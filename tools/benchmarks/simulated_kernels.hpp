// What the benchmarks on the simulated driver begin with.
#pragma once

#include <cuda.h>
#include <simcuda/kernel.hpp>

#include <span>
#include <stdexcept>
#include <string>

namespace bench {

inline void require(CUresult result) {
  if (result != CUDA_SUCCESS) {
    throw std::runtime_error("the simulated driver answers " +
                             std::to_string(static_cast<int>(result)));
  }
}

/// Makes device 0 current, and a module of these kernels, which have to outlive it.
/// @throws std::runtime_error
/// @param accesses lines of the image that say what the kernels do with their parameters
inline CUmodule load_kernels(std::span<const simcuda_kernel* const> kernels,
                             const std::string& accesses) {
  require(cuInit(0));
  const simcuda_kernel_table table{SIMCUDA_VERSION, kernels.data(), kernels.size()};
  if (simcuda_register_kernels(&table) != 0) {
    throw std::runtime_error("simcuda is of another version");
  }
  CUcontext context = nullptr;
  require(cuDevicePrimaryCtxRetain(&context, 0));
  require(cuCtxSetCurrent(context));
  std::string image = "simcuda image 1\n";
  for (const simcuda_kernel* kernel : kernels)
    image += std::string("kernel ") + kernel->name + "\n";
  image += accesses;
  CUmodule module = nullptr;
  require(cuModuleLoadData(&module, image.c_str()));
  return module;
}

}  // namespace bench
