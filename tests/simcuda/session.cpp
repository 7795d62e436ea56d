#include "session.hpp"

#include <algorithm>

Session::Session(int device) : device_(device) {
  REQUIRE(cuInit(0) == CUDA_SUCCESS);
  simcuda_set_noise(0.0, 1);
  REQUIRE(cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS);
  REQUIRE(cuCtxSetCurrent(context) == CUDA_SUCCESS);
  REQUIRE(cuModuleLoadData(&module, test_image()) == CUDA_SUCCESS);
  simcuda_flush_cache(device);
}

Session::~Session() {
  simcuda_set_fault("");
  for (const CUdeviceptr pointer : memory_) cuMemFree_v2(pointer);
  cuDevicePrimaryCtxRelease(device_);
}

CUfunction Session::function(const char* name) const {
  CUfunction found = nullptr;
  REQUIRE(cuModuleGetFunction(&found, module, name) == CUDA_SUCCESS);
  return found;
}

CUdeviceptr Session::memory(std::size_t bytes) {
  CUdeviceptr pointer = 0;
  REQUIRE(cuMemAlloc_v2(&pointer, bytes) == CUDA_SUCCESS);
  REQUIRE(cuMemsetD8_v2(pointer, 0, bytes) == CUDA_SUCCESS);
  memory_.push_back(pointer);
  return pointer;
}

std::vector<float> Session::floats(CUdeviceptr from, std::size_t count) const {
  std::vector<float> values(count);
  REQUIRE(cuMemcpyDtoH_v2(values.data(), from, count * sizeof(float)) == CUDA_SUCCESS);
  return values;
}

CUresult Session::launch(CUfunction function, unsigned grid, unsigned block,
                         std::vector<void*> arguments, unsigned shared_bytes,
                         CUstream stream) const {
  return cuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared_bytes, stream, arguments.data(),
                        nullptr);
}
