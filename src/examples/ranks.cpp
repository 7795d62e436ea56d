// Ranks of one job, which tune a region together, so that all run the same config:
//   contextune run -n 2 --distributed on -- ./ranks
#include <contextune/contextune.hpp>
#include <cstdint>

#include "gpu.h"

int main() {
  std::uint32_t rank = 0;
  std::uint32_t num_ranks = 1;
  contextune_rank(&rank, &num_ranks);
  const CUmodule module = gpu_open(rank);
  const CUfunction kernel = gpu_kernel(module, "scaled_copy");
  const int n = 1 << 20;
  CUdeviceptr x = gpu_floats(n, 3);
  CUdeviceptr y = gpu_floats(n, 0);

  std::int64_t block = 0;  // of the last launch, which is that of the winner
  contextune::Tunable scaled_copy("scaled_copy",
                                  contextune::ConfigSpace().parameter("block", {64, 256, 1024}),
                                  [&](const contextune::Config& config, float factor, int count) {
                                    block = config.get_int("block");
                                    void* arguments[] = {&y, &x, &factor, &count};
                                    return gpu_launch(kernel, unsigned(block), count, arguments);
                                  });
  CONTEXTUAL_AUTOTUNE("step", {.repeatable = true}) {
    gpu_check(scaled_copy(2.0F, n), "scaled_copy");
  }
  std::printf("rank %u of %u runs block=%d\n", rank, num_ranks, int(block));
  return gpu_has(y, n, 6, "2 * 3") ? 0 : 1;
}
