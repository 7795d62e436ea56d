// A region: two kernels are tuned together, as they follow one another. The launch of `scale` is a
// Tunable; `add` is launched as ever, and what may be changed of it is declared by its name.
#include <contextune/contextune.hpp>
#include <cstdint>

#include "gpu.h"

int main() {
  const CUmodule module = gpu_open(0);
  const CUfunction scale = gpu_kernel(module, "scale");
  const CUfunction add = gpu_kernel(module, "add");
  int n = 1 << 20;
  CUdeviceptr x = gpu_floats(n, 3);
  CUdeviceptr y = gpu_floats(n, 1);
  const std::size_t bytes = std::size_t(n) * sizeof(float);

  contextune::Kernel("add")
      .space(contextune::ConfigSpace().parameter("block", {64, 128, 256, 512}))
      .apply([](const contextune::Config& config, contextune::LaunchEdit& launch) {
        launch.set_block({std::uint32_t(config.get_int("block"))});
      })
      .declare();

  contextune::Tunable scale_x(  // the first config is the default
      "scale", contextune::ConfigSpace().parameter("block", {128, 256, 512, 1024}),
      [](float, int count) {
        return contextune::Key{{"n", count}};
      },
      [&](const contextune::Config& config, float factor, int count) {
        void* arguments[] = {&x, &factor, &count};
        return gpu_launch(scale, unsigned(config.get_int("block")), count, arguments);
      });

  // Repeated until tuned, each time from the same x and y, and then run once with the winners.
  CONTEXTUAL_AUTOTUNE("step", {.restore = {{reinterpret_cast<void*>(x), bytes},
                                           {reinterpret_cast<void*>(y), bytes}}}) {
    gpu_check(scale_x(2.0F, n), "scale");
    void* arguments[] = {&y, &x, &n};
    gpu_check(gpu_launch(add, 256, n, arguments), "add");
  }
  return gpu_has(y, n, 7, "1 + 2 * 3") ? 0 : 1;
}
