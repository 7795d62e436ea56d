// Kernel times of src/gpu for comparison with ncu: medians in microseconds, one line a kernel. With
// --bare it only launches, for ncu to look on.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <vector>

#include "gpu/clock/activity_timer.hpp"
#include "gpu/image/kernel_code.hpp"
#include "gpu_fixture.hpp"

namespace {

constexpr int repeats = 21;
struct Load {
  const char* kernel;
  int n;
};
// Nothing at all, and about 2, 20 and 200 us on an H200. What takes 20 us in memory there is
// just too large for the L2 cache, and takes another time in every run.
constexpr std::array<Load, 4> loads{
    {{"saxpy", 0}, {"saxpy", 512 << 10}, {"spin", 3600}, {"saxpy", 44 << 20}}};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const bool bare = argc > 1 && std::strcmp(argv[1], "--bare") == 0;
  static Gpu gpu;
  contextune::gpu::KernelCode code(gpu.driver);
  contextune::gpu::ActivityTimer timer(gpu.driver);
  std::string why;
  if (!bare && !timer.open(why)) {
    std::fprintf(stderr, "no CUPTI: %s\n", why.c_str());
    return 1;
  }
  for (std::size_t i = 0; i < loads.size(); ++i) {
    CUfunction kernel = code.from_file(Gpu::sample("cubin"), loads[i].kernel);
    for (int repeat = 0; repeat < repeats; ++repeat) {
      timer.launch_begin(i + 1, CU_STREAM_LEGACY);
      gpu.launch(kernel, loads[i].n);
      timer.launch_end(i + 1, CU_STREAM_LEGACY);
      contextune::gpu::check(gpu.driver, gpu.driver.cuCtxSynchronize(), "cuCtxSynchronize");
    }
  }
  if (bare) return 0;
  timer.flush(true);
  std::vector<contextune::TimedWork> work;
  timer.collect(work);
  for (std::size_t i = 0; i < loads.size(); ++i) {
    std::vector<double> times;
    for (const auto& one : work) {
      if (one.tag == i + 1) times.push_back((one.end - one.start) * 1e6);
    }
    if (times.size() != repeats) {
      std::fprintf(stderr, "%zu records instead of %d\n", times.size(), repeats);
      return 1;
    }
    std::printf("%s(%d) %.3f\n", loads[i].kernel, loads[i].n, median(times));
  }
  return 0;
}
