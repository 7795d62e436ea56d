/* The report of a stretch that was found because it repeats, on the simulated driver. Whether it is
 * settled, or the search has stopped for this run, depends on this host. Ends with 0 if all is as
 * it should be. */
#include <contextune/contextune.h>

#include <cuda.h>
#include <simcuda/simcuda.h>

#include <stdio.h>

#include "check.h"

static void describe(const struct simcuda_launch* launch, struct simcuda_work* work) {
  (void)launch;
  work->block_cycles = 5e3;
}

static contextune_region_report report(void) {
  contextune_region_report found = {0};
  found.size = sizeof found;
  CHECK(contextune_region_query("auto", &found) == 0);
  return found;
}

int main(void) {
  static struct simcuda_kernel kernel;
  static const struct simcuda_kernel* const kernels[] = {&kernel};
  static const struct simcuda_kernel_table table = {SIMCUDA_VERSION, kernels, 1};
  contextune_region_report found;
  CUcontext context;
  CUmodule module;
  CUfunction function;
  CUstream stream;
  int entry, launch;
  kernel.name = "repeated";
  kernel.describe = describe;
  CHECK(cuInit(0) == CUDA_SUCCESS);
  CHECK(simcuda_register_kernels(&table) == 0);
  CHECK(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
  CHECK(cuCtxSetCurrent(context) == CUDA_SUCCESS);
  CHECK(cuModuleLoadData(&module, "simcuda image 1\nkernel repeated\n") == CUDA_SUCCESS);
  CHECK(cuModuleGetFunction(&function, module, "repeated") == CUDA_SUCCESS);
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  CHECK(report().state == contextune_region_unknown);
  for (entry = 0; entry < 5000; ++entry) {
    for (launch = 0; launch < 40; ++launch)
      CHECK(cuLaunchKernel(function, 8, 1, 1, 64, 1, 1, 0, stream, NULL, NULL) == CUDA_SUCCESS);
    CHECK(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  }
  found = report();
  CHECK(found.state != contextune_region_unknown);
  CHECK(found.sites == 1 && found.tuned <= 1);
  CHECK(found.pairs == 0 || (found.gain_low <= found.gain && found.gain <= found.gain_high));
  CHECK((found.pairs == 0) == (found.verdict == contextune_verdict_none));
  if (failures == 0) puts("ok");
  return failures == 0 ? 0 : 1;
}
