/* What the examples share: a context, the kernels of kernels.ptx beside the executable, memory and
 * launches, all of the CUDA driver API. Ends the program where one of them fails. */
#pragma once

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void gpu_check(CUresult result, const char* what) {
  const char* name = NULL;
  if (result == CUDA_SUCCESS) return;
  cuGetErrorName(result, &name);
  fprintf(stderr, "%s failed: %s\n", what, name == NULL ? "?" : name);
  exit(1);
}

/* Opens the GPU of a rank, 0 where there is one process, and loads the kernels. */
static inline CUmodule gpu_open(unsigned rank) {
  char path[4096];
  CUcontext context;
  CUmodule module;
  int devices = 0;
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof "kernels.ptx");
  path[length > 0 ? length : 0] = '\0';
  strcpy(strrchr(path, '/') + 1, "kernels.ptx");
  gpu_check(cuInit(0), "cuInit");
  gpu_check(cuDeviceGetCount(&devices), "cuDeviceGetCount");
  gpu_check(cuDevicePrimaryCtxRetain(&context, (int)rank % devices), "cuDevicePrimaryCtxRetain");
  gpu_check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  gpu_check(cuModuleLoad(&module, path), "cuModuleLoad");
  return module;
}

static inline CUfunction gpu_kernel(CUmodule module, const char* name) {
  CUfunction function;
  gpu_check(cuModuleGetFunction(&function, module, name), name);
  return function;
}

/* n floats on the GPU, all of that value. */
static inline CUdeviceptr gpu_floats(int n, float value) {
  CUdeviceptr memory;
  unsigned bits;
  memcpy(&bits, &value, sizeof bits);
  gpu_check(cuMemAlloc(&memory, (size_t)n * sizeof(float)), "cuMemAlloc");
  gpu_check(cuMemsetD32(memory, bits, (size_t)n), "cuMemsetD32");
  return memory;
}

/* Launches blocks of `block` threads, one thread for each of n elements. */
static inline CUresult gpu_launch(CUfunction function, unsigned block, int n, void** arguments) {
  const unsigned grid = ((unsigned)n + block - 1) / block;
  return cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, NULL, arguments, NULL);
}

/* Whether all n floats have that value; says what they are. */
static inline int gpu_has(CUdeviceptr memory, int n, float value, const char* name) {
  float* const host = (float*)malloc((size_t)n * sizeof(float));
  int i = 0;
  int same = 0;
  gpu_check(cuMemcpyDtoH(host, memory, (size_t)n * sizeof(float)), "cuMemcpyDtoH");
  while (i < n && host[i] == value) ++i;
  same = i == n;
  if (same) printf("%s: all %d values are %g\n", name, n, (double)value);
  if (!same) printf("%s: value %d is %g, not %g\n", name, i, (double)host[i], (double)value);
  free(host);
  return same;
}
