// A driver-API program with a launch of its own that has configs. Says what contextune makes of the
// way in which it is linked; fails unless at least that launch is tuned.
#include <cuda.h>
#include <simcuda/kernel.hpp>

#include <contextune/contextune.hpp>
#include <cstdio>

namespace {

void describe(const simcuda_launch* launch, simcuda_work* work) {
  work->block_cycles = launch->block[0] == 128 ? 20e3 : 60e3;
}
const simcuda_kernel paced = simcuda::whole_launch_kernel<int>("paced", nullptr, &describe);
const simcuda_kernel* const kernels[] = {&paced};
const simcuda_kernel_table table = {SIMCUDA_VERSION, kernels, 1};

}  // namespace

int main() {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || simcuda_register_kernels(&table) != 0 ||
      cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS ||
      cuModuleLoadData(&module, "simcuda image 1\nkernel paced\n") != CUDA_SUCCESS ||
      cuModuleGetFunction(&function, module, "paced") != CUDA_SUCCESS)
    return 1;

  std::int64_t block = 0;
  contextune::Tunable launch("paced", contextune::ConfigSpace().parameter("block", {256, 128}),
                             [&](const contextune::Config& config, int n) {
                               void* arguments[] = {&n};
                               block = config.get_int("block");
                               return cuLaunchKernel(function, 8, 1, 1, unsigned(block), 1, 1, 0,
                                                     nullptr, arguments, nullptr);
                             });
  CONTEXTUAL_AUTOTUNE("wrong", {.repeatable = true}) launch(1);
  std::printf("state %d: %s\n", int(contextune_current_state()), contextune_state_reason());
  return block == 128 ? 0 : 1;
}
