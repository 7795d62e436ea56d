// Three kernels in an NVTX range that is entered again and again: one that strides over a grid of
// any size, one with template variants that compute the same, one that depends on its launch shape.
// Built with static and shared cudart and with per-thread default streams.
//   regions [--steps N] [--sync N] [--time FILE]
#include <vector>

#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#include "program.hpp"
#include "region_times.cuh"
#include "strided_kernels.cuh"

constexpr int rows = 4096;
constexpr int columns = 1024;
constexpr int elements = rows * columns;

// Each block covers Width x Height elements, each thread one.
template <int Width, int Height>
__global__ void smooth(float* __restrict__ out, const float* __restrict__ in, int width,
                       int height) {
  const int x = blockIdx.x * Width + threadIdx.x;
  const int y = blockIdx.y * Height + threadIdx.y;
  if (x >= width || y >= height) return;
  const auto at = [&](int i, int j) {
    return in[min(max(j, 0), height - 1) * width + min(max(i, 0), width - 1)];
  };
  out[y * width + x] =
      0.5f * at(x, y) + 0.125f * (at(x - 1, y) + at(x + 1, y) + at(x, y - 1) + at(x, y + 1));
}
template __global__ void smooth<8, 8>(float*, const float*, int, int);
template __global__ void smooth<16, 16>(float*, const float*, int, int);
template __global__ void smooth<32, 8>(float*, const float*, int, int);
template __global__ void smooth<64, 4>(float*, const float*, int, int);
template __global__ void smooth<128, 2>(float*, const float*, int, int);

// The order of its additions depends on the block, so only what leaves that alone may be changed.
__global__ void normalize_rows(float* __restrict__ data, int width) {
  __shared__ float partial[256];
  float* row = data + static_cast<size_t>(blockIdx.x) * width;
  float sum = 0;
  for (int i = threadIdx.x; i < width; i += blockDim.x) sum += row[i] * row[i];
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  const float scale = rsqrtf(partial[0] / width + 1e-6f);
  for (int i = threadIdx.x; i < width; i += blockDim.x) row[i] *= scale;
}

int main(int argc, char** argv) {
  const long steps = option(argc, argv, "--steps", 400L);
  const long sync = option(argc, argv, "--sync", 8L);
  RegionTimes times(option(argc, argv, "--time", std::string()));
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
  const cudaStream_t stream = cudaStreamPerThread;
#else
  const cudaStream_t stream = cudaStreamLegacy;
#endif

  std::vector<float> input(elements);
  std::uint32_t state = 12345;
  for (float& value : input) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) / 16777216.0f - 0.5f;
  }
  float* a = nullptr;
  float* b = nullptr;
  CUDA_CHECK(cudaMalloc(&a, elements * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&b, elements * sizeof(float)));
  CUDA_CHECK(cudaMemcpy(a, input.data(), elements * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(b, input.data(), elements * sizeof(float), cudaMemcpyHostToDevice));

  for (long step = 0; step < steps; ++step) {
    nvtxRangePushA("step");
    times.begin(stream);
    // As many authors write it: one block an SM.
    accumulate<<<132, 128>>>(a, b, 1.0f / static_cast<float>(step + 2), elements);
    smooth<8, 8><<<dim3(columns / 8, rows / 8), dim3(8, 8)>>>(b, a, columns, rows);
    normalize_rows<<<rows, 256>>>(b, columns);
    times.end(stream);
    nvtxRangePop();
    CUDA_CHECK(cudaGetLastError());
    if (sync > 0 && step % sync == sync - 1) CUDA_CHECK(cudaStreamSynchronize(stream));
  }
  CUDA_CHECK(cudaDeviceSynchronize());

  Checksum checksum;
  for (const float* buffer : {a, b}) {
    CUDA_CHECK(cudaMemcpy(input.data(), buffer, elements * sizeof(float), cudaMemcpyDeviceToHost));
    checksum.add(input.data(), elements * sizeof(float));
  }
  times.write();
  checksum.print("regions");
  return 0;
}
