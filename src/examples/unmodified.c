/* A program that knows nothing of contextune. It marks its steps for the profiler, with NVTX:
 *   contextune run -- ./unmodified
 *   contextune run --region nvtx:step --space unmodified.lua -- ./unmodified */
#include <nvtx3/nvToolsExt.h>

#include "gpu.h"

int main(int count, char** words) {
  const int steps = count > 1 ? atoi(words[1]) : 1000;
  const CUmodule module = gpu_open(0);
  const CUfunction scaled_copy = gpu_kernel(module, "scaled_copy");
  const CUfunction add = gpu_kernel(module, "add");
  int n = 1 << 12;
  float factor = 2;
  CUdeviceptr x = gpu_floats(n, 3);
  CUdeviceptr y = gpu_floats(n, 0);
  CUdeviceptr sum = gpu_floats(n, 0);
  void* copied[] = {&y, &x, &factor, &n};
  void* added[] = {&sum, &y, &n};
  int step;
  for (step = 0; step < steps; ++step) {
    nvtxRangePushA("step");
    gpu_check(gpu_launch(scaled_copy, 64, n, copied), "scaled_copy");
    gpu_check(gpu_launch(add, 64, n, added), "add");
    nvtxRangePop();
  }
  return gpu_has(sum, n, (float)steps * 6, "the sum of 2 * 3") ? 0 : 1;
}
