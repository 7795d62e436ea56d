// A CUDA graph of two kernels whose own shapes leave most of the GPU idle. It is captured outside
// of the region and its source is destroyed at once; the region launches it.
//   tuned_graph [--steps N] [--streams N] [--update 1] [--time FILE]
#include <vector>

#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#include "program.hpp"
#include "region_times.cuh"
#include "strided_kernels.cuh"

namespace {

constexpr int n = 1 << 20;

cudaGraph_t captured(cudaStream_t stream, float* data, float* sum, float factor) {
  cudaGraph_t graph;
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  advance<<<64, 64, 0, stream>>>(data, factor, n);
  accumulate<<<64, 64, 0, stream>>>(sum, data, 0.5f, n);
  advance<<<64, 64, 0, stream>>>(data, 0.5f * factor, n);
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  return graph;
}

}  // namespace

int main(int argc, char** argv) {
  const long steps = option(argc, argv, "--steps", 2000L);
  const long num_streams = option(argc, argv, "--streams", 1L);
  const bool update = option(argc, argv, "--update", 0L) != 0;
  float* data = nullptr;
  float* sum = nullptr;
  CUDA_CHECK(cudaMalloc(&data, n * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&sum, n * sizeof(float)));
  CUDA_CHECK(cudaMemset(data, 0, n * sizeof(float)));
  CUDA_CHECK(cudaMemset(sum, 0, n * sizeof(float)));
  std::vector<cudaStream_t> streams(num_streams);
  for (cudaStream_t& stream : streams) {
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  cudaGraph_t graph = captured(streams[0], data, sum, 0.75f);
  cudaGraphExec_t exec;
  CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CUDA_CHECK(cudaGraphDestroy(graph));
  CUDA_CHECK(cudaDeviceSynchronize());
  RegionTimes times(option(argc, argv, "--time", std::string()));
  for (long step = 0; step < steps; ++step) {
    if (update && step == steps - 100) {
      graph = captured(streams[0], data, sum, 0.625f);
      cudaGraphExecUpdateResultInfo info;
      CUDA_CHECK(cudaGraphExecUpdate(exec, graph, &info));
      CUDA_CHECK(cudaGraphDestroy(graph));
    }
    times.begin(streams[0]);
    nvtxRangePushA("step");
    for (long i = 0; i < num_streams; ++i) CUDA_CHECK(cudaGraphLaunch(exec, streams[i]));
    nvtxRangePop();
    times.end(streams[0]);
    if (step % 4 == 3) CUDA_CHECK(cudaDeviceSynchronize());
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  times.write();
  Checksum checksum;
  for (const float* from : {data, sum}) {
    std::vector<float> host(n);
    CUDA_CHECK(cudaMemcpy(host.data(), from, n * sizeof(float), cudaMemcpyDeviceToHost));
    checksum.add(host.data(), n * sizeof(float));
  }
  checksum.print("tuned_graph");
  CUDA_CHECK(cudaGraphExecDestroy(exec));
  return 0;
}
