// A program with three kernels, each on memory of its own, in a region that it repeats: in a loop
// between NVTX marks, or as a body that is repeated until it is tuned. With "once" the loop
// launches the third kernel in its first step only. What faults of the simulated driver make of
// their configs is for its caller to find out. Prints a hash of all that is left, which is the same
// whatever ran.
#include <cuda.h>
#include <nvtx3/nvToolsExt.h>

#include <array>
#include <chrono>
#include <contextune/contextune.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <simcuda/kernel.hpp>
#include <thread>
#include <vector>

namespace {

using contextune::Config;
using contextune::ConfigSpace;

constexpr unsigned elements = 4096;
constexpr std::array<const char*, 3> names = {"first", "second", "third"};

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s failed: %d\n", what, static_cast<int>(result));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

void fill(const simcuda::Thread& thread, int n, unsigned value, unsigned* y) {
  for (std::size_t i = thread.global_x(); i < static_cast<std::size_t>(n); i += thread.stride_x())
    y[i] = value + static_cast<unsigned>(i);
}
void describe(const simcuda_launch* launch, simcuda_work* work) {
  work->block_cycles = launch->block[0] == 128 ? 20e3 : 30e3;
}
const std::array<simcuda_kernel, 3> kernels = {
    simcuda::per_thread_kernel<&fill>("first", &describe),
    simcuda::per_thread_kernel<&fill>("second", &describe),
    simcuda::per_thread_kernel<&fill>("third", &describe)};

struct Site {
  CUfunction function = nullptr;
  CUdeviceptr memory = 0;
  unsigned number = 0;

  CUresult launch(unsigned block) const {
    int n = elements;
    unsigned value = number;
    CUdeviceptr y = memory;
    void* arguments[] = {&n, &value, &y};
    return cuLaunchKernel(function, 4, 1, 1, block, 1, 1, 0, nullptr, arguments, nullptr);
  }
};

std::array<Site, 3> load() {
  static const simcuda_kernel* const all[] = {&kernels[0], &kernels[1], &kernels[2]};
  static const simcuda_kernel_table table{SIMCUDA_VERSION, all, 3};
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CHECK(cuInit(0));
  if (simcuda_register_kernels(&table) != 0) std::exit(1);
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoadData(&module,
                         "simcuda image 1\nkernel first\nkernel second\nkernel third\n"
                         "access first 2=w\naccess second 2=w\naccess third 2=w\n"));
  std::array<Site, 3> sites;
  for (unsigned i = 0; i < sites.size(); ++i) {
    sites[i].number = i;
    CHECK(cuModuleGetFunction(&sites[i].function, module, names[i]));
    CHECK(cuMemAlloc(&sites[i].memory, elements * sizeof(unsigned)));
  }
  return sites;
}

void run_body(const std::array<Site, 3>& sites) {
  const auto tunable = [](const Site& site) {
    return contextune::Tunable(names[site.number],
                               ConfigSpace().parameter("block", {256, 64, 128, 512}),
                               [&site](const Config& config) {
                                 return site.launch(static_cast<unsigned>(config.get_int("block")));
                               });
  };
  std::deque<decltype(tunable(sites[0]))> tunables;
  for (const Site& site : sites) tunables.push_back(tunable(site));
  CONTEXTUAL_AUTOTUNE("step", {.repeatable = true}) {
    for (auto& one : tunables) one();
  }
}

void run_loop(const std::array<Site, 3>& sites, int steps, bool third_once) {
  for (int step = 0; step < steps; ++step) {
    nvtxRangePushA("step");
    for (const Site& site : sites)
      if (step == 0 || site.number != 2 || !third_once) CHECK(site.launch(256));
    nvtxRangePop();
    CHECK(cuCtxSynchronize());
    std::this_thread::sleep_for(std::chrono::microseconds(500));  // ranks agree meanwhile
  }
}

std::uint64_t hash_of(const std::array<Site, 3>& sites) {
  std::uint64_t hash = 14695981039346656037ULL;
  std::vector<unsigned> values(elements);
  CHECK(cuCtxSynchronize());
  for (const Site& site : sites) {
    CHECK(cuMemcpyDtoH(values.data(), site.memory, values.size() * sizeof values[0]));
    for (const unsigned value : values) hash = (hash ^ value) * 1099511628211ULL;
  }
  return hash;
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_body = argc == 2 && std::strcmp(argv[1], "body") == 0;
  const bool third_once = argc == 4 && std::strcmp(argv[3], "once") == 0;
  const bool is_loop = (argc == 3 || third_once) && std::strcmp(argv[1], "loop") == 0;
  if (!is_body && !is_loop) {
    std::fputs("usage: fault_sites body | loop STEPS [once]\n", stderr);
    return 2;
  }
  const auto sites = load();
  is_body ? run_body(sites) : run_loop(sites, std::atoi(argv[2]), third_once);
  std::printf("%016llx\n", static_cast<unsigned long long>(hash_of(sites)));
  return 0;
}
