// The whole of src/gpu on the simulated driver and the simulated CUPTI, as a real process has them.
#include <dlfcn.h>

#include <algorithm>
#include <simcuda/kernel.hpp>

#include "catch.hpp"
#include "gpu/clock/activity_timer.hpp"
#include "gpu/clock/clock_monitor.hpp"
#include "gpu/clock/event_timer.hpp"
#include "gpu/clock/span_timer.hpp"
#include "gpu/driver/device_facts.hpp"
#include "gpu/image/kernel_identity.hpp"
#include "gpu/image/launch_limits.hpp"

using namespace contextune;
using namespace contextune::gpu;

namespace {

void scale(const simcuda::Thread& thread, float* data, int n, float factor) {
  for (std::size_t i = thread.global_x(); i < static_cast<std::size_t>(n); i += thread.stride_x()) {
    data[i] *= factor;
  }
}
void describe(const simcuda_launch* launch, simcuda_work* work) {
  const auto n = static_cast<std::size_t>(simcuda::argument<int>(*launch, 1));
  simcuda::touch(*work, simcuda::argument<float*>(*launch, 0), n * 4, SIMCUDA_READ | SIMCUDA_WRITE);
}
constexpr simcuda_kernel scale_kernel =
    simcuda::per_thread_kernel<&scale>("_Z5scalePfif", &describe);
constexpr simcuda_kernel other_kernel =
    simcuda::per_thread_kernel<&scale>("_Z4tileILi16ELi16EEvPfif", &describe);
constexpr const char* image =
    "simcuda image 1\nkernel _Z5scalePfif\nkernel _Z4tileILi16ELi16EEvPfif\n";
constexpr int elements = 1 << 16;

/// The driver with a context and a function; made once, since a process has one driver.
struct Simulation {
  Driver driver;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr data = 0;

  Simulation() {
    void* library = dlopen(CONTEXTUNE_SIMCUDA, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library != nullptr);
    static const simcuda_kernel* const kernels[] = {&scale_kernel, &other_kernel};
    static const simcuda_kernel_table table{SIMCUDA_VERSION, kernels, std::size(kernels)};
    auto* add = reinterpret_cast<decltype(&simcuda_register_kernels)>(
        dlsym(library, "simcuda_register_kernels"));
    REQUIRE(add != nullptr);
    REQUIRE(add(&table) == 0);
    driver = load_driver(library, &dlsym);
    check(driver, driver.cuInit(0), "cuInit");
    check(driver, driver.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    check(driver, driver.cuCtxSetCurrent(context), "cuCtxSetCurrent");
    check(driver, driver.cuMemAlloc(&data, elements * sizeof(float)), "cuMemAlloc");
    CUlibrary loaded = nullptr;
    check(driver,
          driver.cuLibraryLoadData(&loaded, image, nullptr, nullptr, 0, nullptr, nullptr, 0),
          "cuLibraryLoadData");
    CUkernel kernel = nullptr;
    check(driver, driver.cuLibraryGetKernel(&kernel, loaded, "_Z5scalePfif"), "cuLibraryGetKernel");
    function = reinterpret_cast<CUfunction>(kernel);
  }

  void launch(unsigned grid = 32) {
    int n = elements;
    float factor = 1.5f;
    void* arguments[] = {&data, &n, &factor};
    check(driver,
          driver.cuLaunchKernel(function, grid, 1, 1, 128, 1, 1, 0, CU_STREAM_LEGACY, arguments,
                                nullptr),
          "cuLaunchKernel");
  }
  void synchronize() { check(driver, driver.cuCtxSynchronize(), "cuCtxSynchronize"); }
};

Simulation& simulation() {
  static auto* made = new Simulation;
  return *made;
}

void launch_timed(LaunchTimer& timer, std::uint64_t tag) {
  timer.launch_begin(tag, CU_STREAM_LEGACY);
  simulation().launch();
  timer.launch_end(tag, CU_STREAM_LEGACY);
}

}  // namespace

TEST_CASE("The simulated driver is recognised and described", "[simcuda]") {
  auto& sim = simulation();
  CHECK(sim.driver.simulated);
  CHECK(sim.driver.version >= 12040);
  const DeviceFacts facts = device_facts(sim.driver, current_device(sim.driver).value());
  CHECK(facts.simulated);
  CHECK_FALSE(facts.name.empty());
  CHECK(facts.num_sms > 0);
  CHECK(facts.max_shared_bytes > 0);
  const auto clock = make_clock_monitor(sim.driver, 0);
  clock->watch(true);
  CHECK(clock->read().sm_hz == 0);
}

// A checker that watches the process, such as compute-sanitizer, counts a refused call as an error.
TEST_CASE("Without a context nothing is asked that the driver would refuse", "[simcuda]") {
  Driver driver = simulation().driver;
  driver.cuCtxGetDevice = [](CUdevice*) {
    FAIL_CHECK("asked for the device of no context");
    return CUDA_ERROR_INVALID_CONTEXT;
  };
  CUcontext context = nullptr;
  REQUIRE(driver.cuCtxPopCurrent(&context) == CUDA_SUCCESS);
  CHECK_FALSE(current_device(driver));
  REQUIRE(driver.cuCtxPushCurrent(context) == CUDA_SUCCESS);
}

TEST_CASE("A simulated kernel is identified like a real one", "[simcuda]") {
  auto& sim = simulation();
  std::string why;
  const auto kernel = identify(sim.driver, sim.function, why);
  INFO(why);
  REQUIRE(kernel);
  CHECK(kernel->kind == HandleKind::Kernel);
  CHECK(kernel->name == "scale");
  REQUIRE(kernel->parameters.size() == 3);
  CHECK(kernel->parameters[2].offset_bytes == 12);
  CHECK(kernel->registers > 0);
  CHECK(find_function(sim.driver, *kernel, "tile<16, 16>") != nullptr);
  CHECK(find_function(sim.driver, *kernel, "nobody") == nullptr);
  const auto function = identify(sim.driver, kernel->function, why);
  REQUIRE(function);
  CHECK(function->kind == HandleKind::Function);
  CHECK(function->code_hash == kernel->code_hash);
  LaunchSize launch;
  launch.block = {128, 1, 1};
  CHECK(blocks_per_sm(sim.driver, *kernel, launch) > 0);
}

TEST_CASE("The simulated CUPTI times launches", "[simcuda]") {
  auto& sim = simulation();
  ActivityTimer timer(sim.driver);
  std::string why;
  for (int round = 0; round < 2; ++round) {
    const bool open = timer.open(why);
    INFO(why);
    REQUIRE(open);
    for (std::uint64_t tag = 1; tag <= 100; ++tag) launch_timed(timer, tag);
    sim.launch();  // not timed
    sim.synchronize();
    timer.flush(true);
    std::vector<TimedWork> work;
    timer.collect(work);
    REQUIRE(work.size() == 100);
    CHECK(std::all_of(work.begin(), work.end(),
                      [](const TimedWork& one) { return one.end > one.start && one.kernel; }));
    CHECK(timer.dropped() == 0);
    CHECK(timer.release());
  }
}

TEST_CASE("Events and spans agree on the simulated clock", "[simcuda]") {
  auto& sim = simulation();
  EventTimer timer(sim.driver);
  EventSpanTimer spans(sim.driver);
  std::string why;
  REQUIRE(timer.open(why));
  for (std::uint64_t tag = 1; tag <= 20; ++tag) {
    spans.begin(tag, CU_STREAM_LEGACY);
    launch_timed(timer, tag);
    spans.touch(CU_STREAM_LEGACY);
    spans.end();
  }
  sim.synchronize();
  std::vector<TimedWork> work;
  timer.collect(work);
  std::vector<SpanTimer::Span> measured;
  spans.collect(measured);
  REQUIRE(work.size() == 20);
  REQUIRE(measured.size() == 20);
  for (std::size_t i = 0; i < work.size(); ++i) {
    CHECK(work[i].tag == measured[i].tag);
    CHECK(measured[i].seconds >= (work[i].end - work[i].start) * 0.99);
  }
}
