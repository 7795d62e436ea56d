// Kernels whose code calls functions: of their own, of the compiler's library (a division), and of
// the driver (printf, assert), with arrays at places that no compiler knows. Their waits are behind
// the load of the stack pointer, and the rest of their code has moved.
//   called_functions [--steps N]
#include <cassert>
#include <cstdio>

#include <cuda_runtime.h>

#include "program.hpp"

namespace {

constexpr int num_values = 4096;
constexpr int threads = 128;
constexpr int steps_between_prints = 100;

__device__ __noinline__ unsigned long long depth_of(unsigned long long value, int most) {
  if (value <= 1 || most == 0) return 1;
  const unsigned long long rest =
      value % 2 == 0 ? depth_of(value / 2, most - 1) : depth_of(3 * value + 1, most - 1);
  return rest + 1;
}

__global__ void call_functions(const unsigned long long* in, unsigned long long* out, int step) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  assert(in[i] != 0);
  unsigned long long places[16];
  for (int k = 0; k < 16; ++k) places[(in[i] + k) % 16] = depth_of(in[i] + k, 20);
  const unsigned long long divisor = places[step % 16] + 2;
  out[i] = in[(i + step) % num_values] / divisor + places[in[i] % 16] + static_cast<unsigned>(i);
  if (i == 0 && step % steps_between_prints == 0) printf("step %d: %llu\n", step, out[i]);
}

__global__ void fill(unsigned long long* values) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  values[i] = 0x9e3779b97f4a7c15ULL * static_cast<unsigned>(i + 1);
}

}  // namespace

int main(int argc, char** argv) {
  const long steps = option(argc, argv, "--steps", 1000L);
  constexpr int blocks = num_values / threads;
  unsigned long long* values[2] = {};
  for (auto& one : values) CUDA_CHECK(cudaMalloc(&one, num_values * sizeof(*one)));
  fill<<<blocks, threads>>>(values[0]);
  for (long step = 0; step < steps; ++step) {
    call_functions<<<blocks, threads>>>(values[step % 2], values[(step + 1) % 2],
                                        static_cast<int>(step));
  }
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  static unsigned long long host[num_values];
  CUDA_CHECK(cudaMemcpy(host, values[steps % 2], sizeof host, cudaMemcpyDeviceToHost));
  Checksum sum;
  sum.add(host, sizeof host);
  sum.print("called functions");
}
