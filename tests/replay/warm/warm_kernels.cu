// The kernels of the warm regions for a GPU.
#include "kernels.hpp"

#define WARM_KERNEL(name, family, flavour)                                             \
  extern "C" __global__ void name(Word count, const Word* x, Word* y, const Word* z) { \
    for (Word at = blockIdx.x * blockDim.x + threadIdx.x; at < count;                  \
         at += gridDim.x * blockDim.x)                                                 \
      do_one<Family::family, Flavour::flavour>(at, count, blockDim.x, x, y, z);        \
  }
WARM_KERNELS(WARM_KERNEL)
