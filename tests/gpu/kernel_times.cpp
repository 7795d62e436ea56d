// Kernel times of src/gpu for comparison with ncu: medians in microseconds, one line a kernel. With
// --bare it only launches, for ncu to look on.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <vector>

#include "gpu/activity_timer.hpp"
#include "gpu/kernel_code.hpp"
#include "gpu_fixture.hpp"

namespace {

constexpr int repeats = 21;
// Elements for nothing at all and for about 2, 8, 20 and 200 us on an H200.
constexpr std::array<int, 5> sizes{0, 512 << 10, 4 << 20, 11 << 19, 44 << 20};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const bool bare = argc > 1 && std::strcmp(argv[1], "--bare") == 0;
  static Gpu gpu;
  contextune::gpu::KernelCode code(gpu.driver);
  CUfunction saxpy = code.from_file(Gpu::sample("cubin"), "saxpy");
  contextune::gpu::ActivityTimer timer(gpu.driver);
  std::string why;
  if (!bare && !timer.open(why)) {
    std::fprintf(stderr, "no CUPTI: %s\n", why.c_str());
    return 1;
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    for (int repeat = 0; repeat < repeats; ++repeat) {
      timer.launch_begin(i + 1, CU_STREAM_LEGACY);
      gpu.launch(saxpy, sizes[i]);
      timer.launch_end(i + 1, CU_STREAM_LEGACY);
      contextune::gpu::check(gpu.driver, gpu.driver.cuCtxSynchronize(), "cuCtxSynchronize");
    }
  }
  if (bare) return 0;
  timer.flush(true);
  std::vector<contextune::TimedWork> work;
  timer.collect(work);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::vector<double> times;
    for (const auto& one : work) {
      if (one.tag == i + 1) times.push_back((one.end - one.start) * 1e6);
    }
    if (times.size() != repeats) {
      std::fprintf(stderr, "%zu records instead of %d\n", times.size(), repeats);
      return 1;
    }
    std::printf("%d %.3f\n", sizes[i], median(times));
  }
  return 0;
}
