// A choice: one operation, y += factor * x, done by two kernels and a buffer, or by one kernel.
#include <contextune/contextune.hpp>
#include <cstddef>

#include "gpu.h"

int main() {
  const CUmodule module = gpu_open(0);
  const CUfunction scaled_copy = gpu_kernel(module, "scaled_copy");
  const CUfunction add = gpu_kernel(module, "add");
  const CUfunction scaled_add = gpu_kernel(module, "scaled_add");
  const int n = 1 << 20;
  CUdeviceptr x = gpu_floats(n, 3);
  CUdeviceptr y = gpu_floats(n, 1);
  CUdeviceptr buffer = gpu_floats(n, 0);

  contextune::Choice<CUresult(CUdeviceptr, CUdeviceptr, float, int)> accumulate("accumulate");
  accumulate
      .size([](CUdeviceptr, CUdeviceptr, float, int count) {
        return std::size_t(count) * sizeof(float);
      })
      .buffers([&](CUdeviceptr to, CUdeviceptr, float, int count) {
        const std::size_t bytes = std::size_t(count) * sizeof(float);
        return contextune::ChoiceMemory{{{reinterpret_cast<void*>(to), bytes}},  // compared
                                        {{reinterpret_cast<void*>(to), bytes},   // and read
                                         {reinterpret_cast<void*>(buffer), bytes}}};
      })
      .add("two_kernels",  // the first is the default
           [&](const contextune::Config&, CUdeviceptr to, CUdeviceptr from, float factor,
               int count) {
             void* copied[] = {&buffer, &from, &factor, &count};
             const CUresult result = gpu_launch(scaled_copy, 256, count, copied);
             void* added[] = {&to, &buffer, &count};
             return result == CUDA_SUCCESS ? gpu_launch(add, 256, count, added) : result;
           })
      .add("one_kernel", contextune::ConfigSpace().parameter("block", {128, 256, 512}),
           [&](const contextune::Config& config, CUdeviceptr to, CUdeviceptr from, float factor,
               int count) {
             void* arguments[] = {&to, &from, &factor, &count};
             return gpu_launch(scaled_add, unsigned(config.get_int("block")), count, arguments);
           });

  gpu_check(accumulate(y, x, 2.0F, n), "accumulate");
  return gpu_has(y, n, 7, "1 + 2 * 3") ? 0 : 1;
}
