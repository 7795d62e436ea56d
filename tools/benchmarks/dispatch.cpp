// What a call of a tuned function, or of a choice, costs beside what it runs: its key is settled,
// so a call finds the winner and runs it. Beside an empty indirect call, in turns, in one process.
// Host work: the functions that are timed launch nothing.
//
// Works on any driver that is found as libcuda.so.1; on a simulated one the figures say so.
#include <cuda.h>
#include <dlfcn.h>
#include <simcuda/kernel.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <contextune/contextune.hpp>

#include "counted_malloc.hpp"

namespace {

constexpr int turns = 101;
constexpr int calls_per_turn = 10'000;
constexpr double target = 60e-9;

using contextune::Config;
using contextune::ConfigSpace;

void check(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) {
    throw std::runtime_error(std::string(what) + " answers " +
                             std::to_string(static_cast<int>(result)));
  }
}

/// The driver that the program has opened, as it finds its functions.
class Gpu {
 public:
  Gpu() : library_(dlopen("libcuda.so.1", RTLD_NOW)) {
    if (library_ == nullptr) throw std::runtime_error(dlerror());
    simulated_ = dlsym(library_, "simcuda_register_kernels") != nullptr;
    check(get<CUresult(unsigned)>("cuInit")(0), "cuInit");
    CUcontext context = nullptr;
    check(get<CUresult(CUcontext*, CUdevice)>("cuDevicePrimaryCtxRetain")(&context, 0),
          "cuDevicePrimaryCtxRetain");
    check(get<CUresult(CUcontext)>("cuCtxSetCurrent")(context), "cuCtxSetCurrent");
    CUmodule module = nullptr;
    check(get<CUresult(CUmodule*, const void*)>("cuModuleLoadData")(&module, image()),
          "cuModuleLoadData");
    check(get<CUresult(CUfunction*, CUmodule, const char*)>("cuModuleGetFunction")(&paced_, module,
                                                                                   "paced"),
          "cuModuleGetFunction");
    launch_ = get<decltype(cuLaunchKernel)>("cuLaunchKernel");
  }

  [[nodiscard]] bool simulated() const { return simulated_; }
  [[nodiscard]] int num_devices() const {
    int count = 0;
    check(get<CUresult(int*)>("cuDeviceGetCount")(&count), "cuDeviceGetCount");
    return count;
  }

  /// A kernel that takes the longer, the larger its block is.
  CUresult launch(unsigned block) const {
    return launch_(paced_, 1, 1, 1, block, 1, 1, 0, nullptr, nullptr, nullptr);
  }

  template <class Function>
  Function* get(const char* name) const {
    void* found = dlsym(library_, name);
    if (found == nullptr) throw std::runtime_error(std::string("the driver has no ") + name);
    return reinterpret_cast<Function*>(found);
  }

 private:
  const char* image() const {
    if (!simulated_) {
      return ".version 7.0\n.target sm_70\n.address_size 64\n"
             ".visible .entry paced()\n{\n"
             ".reg .u32 %r<5>;\n.reg .pred %p;\n"
             "mov.u32 %r1, %ntid.x;\nshl.b32 %r1, %r1, 8;\nmov.u32 %r2, %clock;\n"
             "again:\nmov.u32 %r3, %clock;\nsub.u32 %r4, %r3, %r2;\n"
             "setp.lt.u32 %p, %r4, %r1;\n@%p bra again;\nret;\n}\n";
    }
    static const simcuda_kernel paced = simcuda::whole_launch_kernel<>(
        "paced", nullptr, [](const simcuda_launch* launch, simcuda_work* work) {
          work->block_cycles = 256.0 * launch->block[0];
        });
    static const simcuda_kernel* const kernels[] = {&paced};
    static const simcuda_kernel_table table = {SIMCUDA_VERSION, kernels, 1};
    if (get<int(const simcuda_kernel_table*)>("simcuda_register_kernels")(&table) != 0)
      throw std::runtime_error("simcuda is of another version");
    return "simcuda image 1\nkernel paced\n";
  }

  void* library_;
  bool simulated_ = false;
  CUfunction paced_ = nullptr;
  decltype(&cuLaunchKernel) launch_ = nullptr;
};

/// Runs one case in turns, with as many different arguments as it has.
/// @return the median's seconds
double measure(const char* name, const std::function<void(int)>& call, double most) {
  std::vector<double> seconds;
  seconds.reserve(turns);
  for (int i = 0; i < calls_per_turn; ++i) call(i);
  const std::uint64_t before = bench::allocations;
  for (int turn = 0; turn < turns; ++turn) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls_per_turn; ++i) call(i);
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() /
        calls_per_turn);
  }
  const std::uint64_t allocated = bench::allocations - before;
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[turns / 2];
  std::printf("%-44s %6.1f ns (%.1f to %.1f)  %llu allocations%s\n", name, median * 1e9,
              seconds[turns / 10] * 1e9, seconds[turns - 1 - turns / 10] * 1e9,
              static_cast<unsigned long long>(allocated),
              median <= most ? "" : "  over the target");
  return median;
}

void run() {
  const Gpu gpu;
  bool launches = true;
  std::uint64_t sum = 0;
  const ConfigSpace space = ConfigSpace().parameter("block", {256, 64, 128});
  const auto body = [&](const Config& config, int n) {
    sum += static_cast<std::uint64_t>(n);
    if (!launches) return CUDA_SUCCESS;
    return gpu.launch(static_cast<unsigned>(config.get_int("block")));
  };
  constexpr int num_keys = 16;
  auto plain = contextune::autotune("dispatch", space, [](int n) { return n % num_keys; }, body,
                                    {.repeatable = true});
  auto sized =
      contextune::autotune("dispatch_sized", space, body, {.repeatable = true}).size([](int n) {
        return 1 << (n % num_keys);
      });
  auto near = contextune::autotune("dispatch_near", space, body,
                                   {.repeatable = true,
                                    .hints = {1024},
                                    .unseen = contextune::UnseenSize::Nearest,
                                    .nearest_within = 1 << 16})
                  .size([](int n) { return 2048 << (n % 4); })
                  .inputs([](std::uint64_t) { return std::tuple(0); });
  contextune::Tunable tunable("dispatch_tunable", space,
                              [&](const Config& config) { return body(config, 1); });
  const auto choice_of = [&](const char* name, contextune::ChoiceOptions options = {}) {
    options.repeatable = true;
    auto choice = std::make_unique<contextune::Choice<CUresult(int)>>(name, options);
    for (const unsigned block : {256U, 64U, 128U}) {
      choice->add(std::to_string(block), [&, block](const Config&, int n) {
        sum += static_cast<std::uint64_t>(n);
        return launches ? gpu.launch(block) : CUDA_SUCCESS;
      });
    }
    return choice;
  };
  const auto chosen = choice_of("dispatch_choice");
  chosen->key([](int n) { return n % num_keys; });
  const auto chosen_by_size = choice_of("dispatch_choice_sized");
  chosen_by_size->size([](int n) { return std::size_t{1} << (n % num_keys); }).type([](int) {
    return "f32";
  });
  const auto chosen_near =
      choice_of("dispatch_choice_near",
                {.unseen = contextune::UnseenSize::Nearest, .nearest_within = 1 << 16});
  chosen_near->size([](int n) { return n < 0 ? std::size_t{1024} : std::size_t{2048} << (n % 4); });
  for (int n = 0; n < num_keys; ++n) {
    plain(n);
    sized(n);
    (*chosen)(n);
    (*chosen_by_size)(n);
  }
  (*chosen_near)(-1);
  near(0);
  CONTEXTUAL_AUTOTUNE("dispatch_region", {.repeatable = true, .refine = false}) tunable();
  launches = false;

  std::printf("%s\n%d keys; devices: %d; median of %d turns of %d calls (10th to 90th of 100)\n",
              gpu.simulated() ? "on the simulated driver; these are times of this host's CPU"
                              : "host work; the functions launch nothing",
              num_keys, gpu.num_devices(), turns, calls_per_turn);
  CUresult (*volatile indirect)(int) = [](int n) {
    return n < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  };
  measure(
      "an empty indirect call", [&](int n) { static_cast<void>(indirect(n)); }, 1);
  // What it costs to know where a call is, of which the first is asked where there are several
  // devices.
  const auto get_device = gpu.get<CUresult(CUdevice*)>("cuCtxGetDevice");
  const auto get_context = gpu.get<CUresult(CUcontext*)>("cuCtxGetCurrent");
  CUdevice device = 0;
  CUcontext context = nullptr;
  measure(
      "cuCtxGetDevice", [&](int) { static_cast<void>(get_device(&device)); }, 1);
  measure(
      "cuCtxGetCurrent", [&](int) { static_cast<void>(get_context(&context)); }, 1);
  measure(
      "a function of an integer key", [&](int n) { static_cast<void>(plain(n)); }, target);
  measure(
      "a function of a size in buckets", [&](int n) { static_cast<void>(sized(n)); }, target);
  measure(
      "a function at a size near one measured", [&](int n) { static_cast<void>(near(n)); }, target);
  measure(
      "a Tunable outside of regions", [&](int) { static_cast<void>(tunable()); }, 1);
  measure(
      "a choice of an integer key", [&](int n) { static_cast<void>((*chosen)(n)); }, target);
  measure(
      "a choice of a size in buckets and a type",
      [&](int n) { static_cast<void>((*chosen_by_size)(n)); }, target);
  measure(
      "a choice at a size near one measured", [&](int n) { static_cast<void>((*chosen_near)(n)); },
      target);
  if (sum == 0) throw std::runtime_error("no function ran");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    std::printf("usage: %s\nTimes calls of functions and choices whose keys are settled.\n",
                argv[0]);
    return std::strcmp(argv[1], "--help") == 0 ? 0 : 2;
  }
  const std::string logs =
      (std::filesystem::temp_directory_path() / "contextune_bench_dispatch").string();
  setenv("CONTEXTUNE_LOG_DIR", logs.c_str(), 0);
  setenv("CONTEXTUNE_STORE", "off", 1);
  try {
    run();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}
