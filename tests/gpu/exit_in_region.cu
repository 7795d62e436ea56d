// A program that another of its threads ends, by exit or by the return of main, with status 5, so
// many ms after its region first began, at a moment in which the thread that was in it does nothing
// of its own with CUDA: it leaves the region, which takes long while that is replayed, and waits
// from then on.
//   exit_in_region --after MS [--by exit|return]
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#include "program.hpp"

constexpr int n = 1 << 20;

__global__ void relax(float* data, int size) {
  const int stride = static_cast<int>(gridDim.x * blockDim.x);
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < size; i += stride)
    data[i] = 0.75f * data[i] + 1.0f;
}

std::atomic<bool> begun{false}, ending{false}, idle{false};

void stay_in_region(float* data) {
  while (true) {
    nvtxRangePushA("step");
    begun.store(true);
    for (int i = 0; i < 4; ++i) relax<<<64, 64>>>(data, n);
    idle.store(true);
    nvtxRangePop();
    while (ending.load()) pause();
    idle.store(false);
    CUDA_CHECK(cudaDeviceSynchronize());
  }
}

int await_end(long after) {
  while (!begun.load()) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(after));
  ending.store(true);
  std::this_thread::sleep_for(std::chrono::milliseconds(1));  // it may just have looked
  while (!idle.load()) std::this_thread::yield();
  std::printf("ends\n");
  return 5;
}

int main(int argc, char** argv) {
  const long after = option(argc, argv, "--after", 20L);
  float* data = nullptr;
  CUDA_CHECK(cudaMalloc(&data, n * sizeof(float)));
  CUDA_CHECK(cudaMemset(data, 0, n * sizeof(float)));
  relax<<<64, 64>>>(data, 0);
  CUDA_CHECK(cudaDeviceSynchronize());
  if (option(argc, argv, "--by", std::string("exit")) == "return") {
    std::thread(stay_in_region, data).detach();
    return await_end(after);
  }
  std::thread([after] { std::exit(await_end(after)); }).detach();
  stay_in_region(data);
}
