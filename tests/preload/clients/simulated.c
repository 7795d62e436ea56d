/* A driver-API program on the simulated driver: module, launches, copies. */
#include "preload/contextune_abi.h"

#include <cuda.h>
#include <dlfcn.h>
#include <simcuda/simcuda.h>
#include <stdio.h>
#include <stdlib.h>

static const char* const names[] = {
#define CONTEXTUNE_ENTRY(name, ...) #name,
#include "preload/registry/driver.def"
#undef CONTEXTUNE_ENTRY
};

static void increment(const struct simcuda_launch* launch) {
  int* value = *(int**)launch->arguments[0];
  for (unsigned i = 0; i < launch->grid[0] * launch->block[0]; ++i) {
    value[i] += 1;
  }
}

static void expect(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) {
    printf("%s: %d\n", what, (int)result);
    exit(1);
  }
}

int main(void) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  int (*register_kernels)(const struct simcuda_kernel_table*) =
      (int (*)(const struct simcuda_kernel_table*))dlsym(library, "simcuda_register_kernels");
  int found = 0;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
    found += dlsym(library, names[i]) != NULL;
  }
  printf("entries %s\n", found > 60 ? "found" : "missing");

  static const struct simcuda_parameter parameter = {sizeof(void*), sizeof(void*)};
  static const struct simcuda_kernel kernel = {
      .name = "increment", .run = increment, .parameters = &parameter, .parameter_count = 1};
  static const struct simcuda_kernel* const kernels[] = {&kernel};
  static const struct simcuda_kernel_table table = {SIMCUDA_VERSION, kernels, 1};
  printf("registered %d\n", register_kernels(&table));

  CUcontext context = NULL;
  CUmodule module = NULL;
  CUfunction function = NULL;
  CUdeviceptr memory = 0;
  expect(cuInit(0), "init");
  expect(cuDevicePrimaryCtxRetain(&context, 0), "context");
  expect(cuCtxSetCurrent(context), "current");
  expect(cuModuleLoadData(&module, "simcuda image 1\nkernel increment\naccess increment 0=rw\n"),
         "module");
  expect(cuModuleGetFunction(&function, module, "increment"), "function");
  expect(cuMemAlloc(&memory, 64 * sizeof(int)), "memory");
  expect(cuMemsetD32(memory, 0, 64), "set");
  void* params[] = {&memory};
  for (int i = 0; i < 10; ++i) {
    expect(cuLaunchKernel(function, 2, 1, 1, 32, 1, 1, 0, NULL, params, NULL), "launch");
  }
  expect(cuCtxSynchronize(), "sync");
  int values[64] = {0};
  expect(cuMemcpyDtoH(values, memory, sizeof values), "copy");
  printf("values %d %d\n", values[0], values[63]);
  printf("bad launch %d\n",
         (int)cuLaunchKernel(function, 1, 1, 1, 4096, 1, 1, 0, NULL, params, NULL));
  expect(cuMemFree(memory), "free");
  expect(cuModuleUnload(module), "unload");
  expect(cuDevicePrimaryCtxRelease(0), "release");
  return 0;
}
