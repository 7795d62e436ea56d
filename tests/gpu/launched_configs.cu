// The kernels of launched_configs. A block spins for a time that depends on its size alone: the
// larger the block, the sooner it ends.
#define KERNEL(number)                                                                      \
  extern "C" __global__ void kernel_##number(int n, int value, int* out) {                  \
    const long long begin = clock64();                                                      \
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) \
      out[i] = value + i;                                                                   \
    while (clock64() - begin < 200000 - 5000 * static_cast<int>(blockDim.x / 32)) {         \
    }                                                                                       \
  }
KERNEL(0)
KERNEL(1)
KERNEL(2)
KERNEL(3)
KERNEL(4)
