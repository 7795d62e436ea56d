// A whole function with configs: each new size is measured when it is first called with it.
#include <contextune/contextune.hpp>
#include <cstdint>
#include <vector>

#include "gpu.h"

struct Shape {
  std::int64_t block;
};
contextune::Config describe(const Shape& shape) {  // what logs call it
  return {{"block", shape.block}};
}

int main() {
  const CUmodule module = gpu_open(0);
  const CUfunction kernel = gpu_kernel(module, "scaled_copy");
  const int most = 1 << 20;
  const CUdeviceptr x = gpu_floats(most, 3);
  const CUdeviceptr y = gpu_floats(most, 0);

  auto scaled_copy =
      contextune::autotune(
          "scaled_copy",
          std::vector<Shape>{{64}, {128}, {256}, {512}, {1024}},            // the default first
          [](CUdeviceptr, CUdeviceptr, float, int) { return 0; },           // key
          [](const Shape& shape, CUdeviceptr, CUdeviceptr, float, int n) {  // prune: true keeps
            return shape.block <= n;
          },
          [kernel](const Shape& shape, CUdeviceptr out, CUdeviceptr in, float factor, int n) {
            void* arguments[] = {&out, &in, &factor, &n};
            return gpu_launch(kernel, unsigned(shape.block), n, arguments);
          },
          {.repeatable = true, .verbose = true})
          .size([](CUdeviceptr, CUdeviceptr, float, int n) { return n; });

  for (const int n : {1 << 10, 1 << 16, most}) {
    gpu_check(scaled_copy(y, x, 2.0F, n), "scaled_copy");
    if (!gpu_has(y, n, 6, "2 * 3")) return 1;
  }
  return 0;
}
