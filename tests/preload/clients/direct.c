/* Linked to the driver, as Triton's launch stubs are. `direct [launches [graph]]`. */
#include "fake_driver.h"

#include <cuda.h>
#include <cudaProfiler.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  const int launches = argc > 1 ? atoi(argv[1]) : 3;
  CUfunction function = (CUfunction)(uintptr_t)0x1234;
  CUmodule module = (CUmodule)(uintptr_t)0x5678;
  printf("init %d\n", (int)cuInit(0));
  printf("name %d\n", (int)cuModuleGetFunction(&function, module, "kernel"));
  void* params[1] = {&function};
  CUlaunchConfig config = {.gridDimX = 7,
                           .gridDimY = 8,
                           .gridDimZ = 9,
                           .blockDimX = 4,
                           .blockDimY = 5,
                           .blockDimZ = 6,
                           .sharedMemBytes = 32,
                           .hStream = (CUstream)(uintptr_t)0x9};
  for (int i = 0; i < launches; ++i) {
    CUstream stream = (CUstream)(uintptr_t)0x8;
    if (cuLaunchKernel(function, 1, 2, 3, 4, 5, 6, 7, stream, params, NULL) != CUDA_SUCCESS ||
        cuLaunchKernelEx(&config, function, params, NULL) != CUDA_SUCCESS ||
        cuLaunchCooperativeKernel(function, 3, 2, 1, 6, 5, 4, 0, NULL, params) != CUDA_SUCCESS) {
      printf("launch %d failed\n", i);
    }
  }
  if (argc > 2) {
    CUgraphExec graph = (CUgraphExec)(uintptr_t)0x4321;
    printf("graph %d\n", (int)cuGraphLaunch(graph, (CUstream)(uintptr_t)0x8));
    printf("calls %d\n", fake_calls("cuGraphLaunch"));
  }
  printf("profile %d\n", (int)cuProfilerStart());
  printf("profile %d\n", (int)cuProfilerStop());
  printf("load %d\n", (int)cuFuncLoad(function));
  printf("record %d\n", (int)cuEventRecord((CUevent)(uintptr_t)0x6, NULL));
  printf("copy %d\n", (int)cuMemcpyDtoD(1, 2, 3));
  printf("sync %d\n", (int)cuStreamSynchronize(NULL));
  printf("calls %d %d %d %d\n", fake_calls("cuInit"), fake_calls("cuLaunchKernel"),
         fake_calls("cuLaunchKernelEx"), fake_calls("cuLaunchCooperativeKernel"));
  unsigned long long (*passed)(void) = NULL;
  void* core = dlopen("libcontextune.so", RTLD_NOLOAD | RTLD_LAZY);
  if (core != NULL) {
    passed = (unsigned long long (*)(void))dlsym(core, "recording_core_passed");
  }
  if (passed != NULL) {
    fprintf(stderr, "passed %llu\n", passed());
  }
  return 0;
}
