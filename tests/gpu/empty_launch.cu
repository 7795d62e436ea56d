// How fast an empty kernel can be launched, outside of any region and inside one that is entered
// often; the figures go to --time FILE, so that the output stays the same.
//   empty_launch [--launches N] [--steps N] [--time FILE]
#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>
#include <vector>

#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#include "program.hpp"

__global__ void nothing() {}

// Best of several rounds, each a queue that never fills up: what a launch costs the host.
static double microseconds_per_launch(long launches) {
  using clock = std::chrono::steady_clock;
  double best = 1e9;
  for (int round = 0; round < 9; ++round) {
    CUDA_CHECK(cudaDeviceSynchronize());
    const auto start = clock::now();
    for (long i = 0; i < launches; ++i) nothing<<<1, 32>>>();
    const std::chrono::duration<double, std::micro> taken = clock::now() - start;
    best = std::min(best, taken.count() / static_cast<double>(launches));
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  return best;
}

int main(int argc, char** argv) {
  const long launches = option(argc, argv, "--launches", 20000L);
  const long steps = option(argc, argv, "--steps", 2000L);
  const std::string file = option(argc, argv, "--time", std::string());
  nothing<<<1, 32>>>();
  CUDA_CHECK(cudaDeviceSynchronize());
  const double before = microseconds_per_launch(launches);
  for (long step = 0; step < steps; ++step) {
    nvtxRangePushA("step");
    nothing<<<1, 32>>>();
    nvtxRangePop();
    if (step % 16 == 15) CUDA_CHECK(cudaDeviceSynchronize());
  }
  // What is kept at hand for another region goes when this one begins again some time later.
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  nvtxRangePushA("step");
  nothing<<<1, 32>>>();
  nvtxRangePop();
  const double after = microseconds_per_launch(launches);
  if (!file.empty()) std::ofstream(file) << before << '\n' << after << '\n';
  CUDA_CHECK(cudaGetLastError());
  std::printf("empty_launch %ld\n", 18 * launches + steps + 2);
  return 0;
}
