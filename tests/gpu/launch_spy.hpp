#pragma once

// What launch_spy.cpp, in front of the driver, tells about the launches that it handed on.
#include <cuda.h>

#include <cstddef>

struct SpiedLaunch {
  CUfunction function;
  unsigned threads;  // of a block
};

/// All launches in their order; valid until the next one. Looked up by name.
extern "C" const SpiedLaunch* launch_spy_launches(std::size_t* num_launches);
