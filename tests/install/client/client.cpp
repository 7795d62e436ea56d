// A driver-API program that links contextune. Fails unless its launches are seen and tuned.
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

#define REQUIRE(what)                                         \
  do {                                                        \
    if (!(what)) {                                            \
      std::fprintf(stderr, "line %d: %s\n", __LINE__, #what); \
      return 1;                                               \
    }                                                         \
  } while (0)

}  // namespace

int main() {
  contextune::Kernel("paced")
      .space(contextune::ConfigSpace().parameter("block", {64, 128}))
      .apply([](const contextune::Config& config, contextune::LaunchEdit& launch) {
        launch.set_block({static_cast<std::uint32_t>(config.get_int("block"))});
      })
      .declare();

  REQUIRE(cuInit(0) == CUDA_SUCCESS);
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  REQUIRE(simcuda_register_kernels(&table) == 0);
  REQUIRE(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
  REQUIRE(cuCtxSetCurrent(context) == CUDA_SUCCESS);
  REQUIRE(cuModuleLoadData(&module, "simcuda image 1\nkernel paced\n") == CUDA_SUCCESS);
  REQUIRE(cuModuleGetFunction(&function, module, "paced") == CUDA_SUCCESS);
  REQUIRE(contextune_current_state() == contextune_state_full);

  int n = 1;
  void* arguments[] = {&n};
  int runs = 0;
  CONTEXTUAL_AUTOTUNE("client", {.repeatable = true}) {
    ++runs;
    REQUIRE(cuLaunchKernel(function, 8, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr) ==
            CUDA_SUCCESS);
  }
  REQUIRE(runs > 24);

  // The winner: three times as fast as the launch that the program writes.
  CONTEXTUAL_AUTOTUNE("client", {.repeatable = true}) {
    REQUIRE(cuLaunchKernel(function, 8, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr) ==
            CUDA_SUCCESS);
  }
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  const double tuned = simcuda_last_kernel_noise_free_time(0);
  REQUIRE(cuLaunchKernel(function, 8, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr) ==
          CUDA_SUCCESS);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  REQUIRE(tuned < 0.5 * simcuda_last_kernel_noise_free_time(0));
  std::printf("tuned in %d runs of the body\n", runs);
  return 0;
}
