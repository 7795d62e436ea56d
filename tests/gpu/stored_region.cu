// A region whose winners are kept from run to run. With --fault, a block of 512 threads writes to
// an illegal address: a mistake in a declaration that only one config shows.
//   stored_region [--steps N] [--fault 1] [--first FILE]
// The file gets what the first entry took of the host, in us: from its begin to its end, without
// waiting for the GPU.
#include <chrono>
#include <fstream>
#include <vector>

#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#include "program.hpp"

constexpr int n = 1 << 20;

__global__ void relax(float* data, int size, bool fault) {
  if (fault && blockDim.x == 512) *reinterpret_cast<volatile int*>(16) = 1;
  const int stride = static_cast<int>(gridDim.x * blockDim.x);
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < size; i += stride)
    data[i] = 0.75f * data[i] + 1.0f;
}

__global__ void square(const float* data, float* out, int size) {
  const int stride = static_cast<int>(gridDim.x * blockDim.x);
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < size; i += stride)
    out[i] = data[i] * data[i];
}

int main(int argc, char** argv) {
  const long steps = option(argc, argv, "--steps", 20L);
  const bool fault = option(argc, argv, "--fault", 0L) != 0;
  const std::string first = option(argc, argv, "--first", std::string());
  float* data = nullptr;
  float* out = nullptr;
  CUDA_CHECK(cudaMalloc(&data, n * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&out, n * sizeof(float)));
  CUDA_CHECK(cudaMemset(data, 0, n * sizeof(float)));
  // What the runtime does at a kernel's first launch is no part of the first entry.
  relax<<<1, 64>>>(data, 0, false);
  square<<<1, 64>>>(data, out, 0);
  CUDA_CHECK(cudaDeviceSynchronize());
  for (long step = 0; step < steps; ++step) {
    const auto begin = std::chrono::steady_clock::now();
    nvtxRangePushA("step");
    relax<<<64, 64>>>(data, n, fault);
    square<<<64, 64>>>(data, out, n);
    nvtxRangePop();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    if (step == 0 && !first.empty()) std::ofstream(first) << took.count() << '\n';
    CUDA_CHECK(cudaGetLastError());
    if (step % 4 == 3) CUDA_CHECK(cudaDeviceSynchronize());
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  std::vector<float> host(n);
  CUDA_CHECK(cudaMemcpy(host.data(), out, n * sizeof(float), cudaMemcpyDeviceToHost));
  Checksum checksum;
  checksum.add(host.data(), n * sizeof(float));
  checksum.print("stored_region");
  return 0;
}
