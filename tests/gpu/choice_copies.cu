// A choice whose implementations copy one buffer to another: with a kernel, or with nothing but
// copies of the driver, between two GPUs where there are two. Says what contextune and CUDA events
// measured of each, and ends with 1 where they are too far apart, one was not measured, or a slow
// one won.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

#include <contextune/contextune.hpp>

#include "program.hpp"

namespace {

constexpr std::size_t count = std::size_t{64} << 20U;
constexpr std::size_t bytes = count * sizeof(float);
constexpr int parts = 4;
using Copy = contextune::Choice<cudaError_t(float*, const float*, cudaStream_t)>;

__global__ void copy_slowly(float* to, const float* from, std::size_t n) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride)
    to[i] = from[i];
}

cudaError_t with_a_kernel(const contextune::Config&, float* to, const float* from,
                          cudaStream_t stream) {
  copy_slowly<<<8, 256, 0, stream>>>(to, from, count);
  return cudaGetLastError();
}
cudaError_t with_copies(const contextune::Config&, float* to, const float* from,
                        cudaStream_t stream) {
  for (int i = 0; i < parts; ++i) {
    const std::size_t at = count / parts * i;
    const cudaError_t result =
        cudaMemcpyAsync(to + at, from + at, bytes / parts, cudaMemcpyDefault, stream);
    if (result != cudaSuccess) return result;
  }
  return cudaSuccess;
}
/// By a call that may return only when it is done, on the default stream.
cudaError_t with_a_waiting_copy(const contextune::Config&, float* to, const float* from,
                                cudaStream_t stream) {
  cudaError_t result = cudaStreamSynchronize(stream);
  if (result == cudaSuccess) result = cudaMemcpy(to, from, bytes, cudaMemcpyDefault);
  return result == cudaSuccess ? cudaStreamSynchronize(cudaStreamLegacy) : result;
}
/// A fill, and a copy over it.
cudaError_t with_a_fill(const contextune::Config& config, float* to, const float* from,
                        cudaStream_t stream) {
  const cudaError_t result = cudaMemsetAsync(to, 0, bytes, stream);
  return result != cudaSuccess ? result : with_copies(config, to, from, stream);
}

struct Way {
  const char* name;
  cudaError_t (*run)(const contextune::Config&, float*, const float*, cudaStream_t);
};

/// Median of the seconds between two events around it.
double by_events(const Way& way, float* to, const float* from, cudaStream_t stream) {
  cudaEvent_t before = nullptr, after = nullptr;
  CUDA_CHECK(cudaEventCreate(&before));
  CUDA_CHECK(cudaEventCreate(&after));
  std::vector<float> all;
  for (int i = 0; i < 9; ++i) {
    float milliseconds = 0;
    CUDA_CHECK(cudaEventRecord(before, stream));
    CUDA_CHECK(way.run({}, to, from, stream));
    CUDA_CHECK(cudaEventRecord(after, stream));
    CUDA_CHECK(cudaEventSynchronize(after));
    CUDA_CHECK(cudaEventElapsedTime(&milliseconds, before, after));
    all.push_back(milliseconds);
  }
  std::sort(all.begin(), all.end());
  return all[all.size() / 2] * 1e-3;
}

}  // namespace

int main() {
  int devices = 0, reaches = 0;
  CUDA_CHECK(cudaGetDeviceCount(&devices));
  float *to = nullptr, *from = nullptr;
  if (devices > 1) CUDA_CHECK(cudaDeviceCanAccessPeer(&reaches, 0, 1));
  CUDA_CHECK(cudaSetDevice(reaches != 0 ? 1 : 0));
  CUDA_CHECK(cudaMalloc(&from, bytes));
  CUDA_CHECK(cudaMemset(from, 1, bytes));
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaSetDevice(0));
  if (reaches != 0) CUDA_CHECK(cudaDeviceEnablePeerAccess(1, 0));
  CUDA_CHECK(cudaMalloc(&to, bytes));
  cudaStream_t stream = nullptr;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

  const std::vector<Way> ways = {{"kernel", &with_a_kernel},
                                 {"copies", &with_copies},
                                 {"waiting_copy", &with_a_waiting_copy},
                                 {"fill", &with_a_fill}};
  Copy copy("copy", {.n_repeat = 9});
  copy.size([](auto&&...) { return bytes; }).buffers([](float* out, const float*, cudaStream_t) {
    return contextune::ChoiceMemory{{{out, bytes}}};
  });
  for (const Way& way : ways) copy.add(way.name, way.run);
  CUDA_CHECK(copy(to, from, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));

  bool right = true;
  std::string text = reaches != 0 ? "between two GPUs:" : "on one GPU:";
  std::string winner = "none";
  const auto timings = copy.timings({.bytes = bytes});
  for (const contextune::ChoiceTiming& one : timings) {
    const auto way = std::find_if(ways.begin(), ways.end(),
                                  [&](const Way& w) { return w.name == one.implementation; });
    const double reference = by_events(*way, to, from, stream);
    // Events around copies hold what the host takes to issue the next.
    right =
        right && one.samples == 9 && one.seconds > 0.5 * reference && one.seconds < 1.1 * reference;
    if (one.is_winner) winner = one.implementation;
    text += " " + one.implementation + " " + std::to_string(static_cast<int>(one.seconds * 1e6)) +
            " us (" + std::to_string(static_cast<int>(reference * 1e6)) + ")";
  }
  right = right && timings.size() == ways.size() && winner != "kernel" && winner != "fill";
  std::printf("%s; %s wins\n", text.c_str(), winner.c_str());
  return right ? 0 : 1;
}
