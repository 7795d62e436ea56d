#pragma once

#include <cuda.h>
#include <nccl.h>
#include <simcuda/kernel.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>

inline void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s failed: %d\n", what, static_cast<int>(result));
  std::_Exit(1);
}
inline void check(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  std::fprintf(stderr, "%s failed: %s\n", what, ncclGetErrorString(result));
  std::_Exit(1);
}
/// Ends the process where the call fails.
#define CHECK(call) check(call, #call)

/// Makes the first device's context current and loads the program's only kernel. Once in a process.
inline CUfunction load(const simcuda_kernel& kernel) {
  static const simcuda_kernel* const kernels[] = {&kernel};
  static const simcuda_kernel_table table{SIMCUDA_VERSION, kernels, 1};
  const std::string image = "simcuda image 1\nkernel " + std::string(kernel.name) + "\n";
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CHECK(cuInit(0));
  if (simcuda_register_kernels(&table) != 0) std::_Exit(1);
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoadData(&module, image.c_str()));
  CHECK(cuModuleGetFunction(&function, module, kernel.name));
  return function;
}
