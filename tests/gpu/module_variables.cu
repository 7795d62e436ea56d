// Every kind of variable that a kernel can write or read at module scope.
namespace {
__device__ int unnamed_counter;
}
__device__ int plain_counter;
static __device__ int static_counter;
__device__ int initialised[4] = {1, 2, 3, 4};
__device__ __managed__ int managed_counter;
__constant__ float constant_table[16];
template <int N>
__device__ double in_template[N];
template <int N>
static __device__ int static_in_template[N];
extern "C" {
__device__ unsigned char odd_bytes[3];
}

extern "C" __global__ void count(int i, float x) {
  static __device__ int in_kernel;
  plain_counter += i;
  static_counter += i;
  initialised[i] += i;
  managed_counter += i;
  in_template<5>[i] += constant_table[i] + sinf(x);
  static_in_template<2>[i] += i;
  odd_bytes[i] += 1;
  unnamed_counter += i;
  in_kernel += i;
}
