#pragma once

#include <cuda.h>

#include <cstdio>
#include <cstdlib>

/// Ends the program if a call failed: it makes no call that may.
inline void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  std::printf("%s failed: %s\n", what, name == nullptr ? "?" : name);
  std::fflush(stdout);
  std::_Exit(3);
}
