// Kernels that take functions from the driver.
#include <cstdio>

extern "C" __global__ void prints(int i) {
  printf("%d\n", i);
}
extern "C" __global__ void allocates(int** to) {
  *to = new int[3];
}
