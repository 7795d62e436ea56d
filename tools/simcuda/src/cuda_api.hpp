#pragma once
// cuda.h with every form of every entry point declared under its exact exported name, and visible.

#pragma GCC visibility push(default)
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>
#include <cudaProfiler.h>
#pragma GCC visibility pop
