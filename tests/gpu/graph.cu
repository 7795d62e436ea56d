// A CUDA graph, captured within a range of the name of the region and launched in it.
//   graph [--steps N]
#include <vector>

#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#include "program.hpp"
#include "strided_kernels.cuh"

int main(int argc, char** argv) {
  const long steps = option(argc, argv, "--steps", 200L);
  constexpr int n = 1 << 20;
  float* data = nullptr;
  CUDA_CHECK(cudaMalloc(&data, n * sizeof(float)));
  CUDA_CHECK(cudaMemset(data, 0, n * sizeof(float)));
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreate(&stream));

  // Plain launches first, so that a tuner is at work when the capture begins, and not done yet.
  for (long step = 0; step < steps / 16; ++step) {
    nvtxRangePushA("step");
    advance<<<256, 128, 0, stream>>>(data, 0.5f, n);
    nvtxRangePop();
  }
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  nvtxRangePushA("step");
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < 4; ++i) advance<<<256, 128, 0, stream>>>(data, 0.25f + 0.125f * i, n);
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  nvtxRangePop();
  CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CUDA_CHECK(cudaGraphDestroy(graph));
  for (long step = 0; step < steps; ++step) {
    nvtxRangePushA("step");
    CUDA_CHECK(cudaGraphLaunch(exec, stream));
    advance<<<256, 128, 0, stream>>>(data, 0.75f, n);
    nvtxRangePop();
    if (step % 16 == 15) CUDA_CHECK(cudaStreamSynchronize(stream));
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  std::vector<float> host(n);
  CUDA_CHECK(cudaMemcpy(host.data(), data, n * sizeof(float), cudaMemcpyDeviceToHost));
  Checksum checksum;
  checksum.add(host.data(), n * sizeof(float));
  checksum.print("graph");
  return 0;
}
