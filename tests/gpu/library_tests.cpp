#include "catch.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include <contextune/error.hpp>

#include "gpu/clock/activity_timer.hpp"
#include "gpu/clock/clock_monitor.hpp"
#include "gpu/clock/event_timer.hpp"
#include "gpu/clock/span_timer.hpp"
#include "gpu/image/kernel_code.hpp"
#include "gpu/image/kernel_identity.hpp"
#include "gpu/image/launch_limits.hpp"
#include "gpu_fixture.hpp"

using namespace contextune;
using namespace contextune::gpu;

namespace {

Gpu& the_gpu() {
  static auto* gpu = new Gpu;
  return *gpu;
}

KernelCode& the_code() {
  static auto* code = new KernelCode(the_gpu().driver);
  return *code;
}

void synchronize() {
  check(the_gpu().driver, the_gpu().driver.cuCtxSynchronize(), "cuCtxSynchronize");
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.at(values.size() / 2);
}

std::vector<double> durations(const std::vector<TimedWork>& work) {
  std::vector<double> seconds;
  for (const TimedWork& one : work) seconds.push_back(one.end - one.start);
  return seconds;
}

void launch_timed(LaunchTimer& timer, CUfunction function, int launches, int n = 1 << 20) {
  for (int i = 0; i < launches; ++i) {
    const auto tag = static_cast<std::uint64_t>(i) + 1;
    timer.launch_begin(tag, CU_STREAM_LEGACY);
    the_gpu().launch(function, n);
    timer.launch_end(tag, CU_STREAM_LEGACY);
  }
}

}  // namespace

TEST_CASE("A kernel of a library is identified by its real name and layout", "[gpu]") {
  auto& gpu = the_gpu();
  for (const char* extension : {"cubin", "fatbin", "ptx"}) {
    INFO(extension);
    CUfunction handle = the_code().from_file(Gpu::sample(extension), "tile<32,8>");
    std::string why;
    const auto kernel = identify(gpu.driver, handle, why);
    INFO(why);
    REQUIRE(kernel);
    CHECK(kernel->kind == HandleKind::Kernel);
    CHECK(kernel->name == "tile<32, 8>");
    CHECK(kernel->symbol == "_Z4tileILi32ELi8EEvPfi");
    REQUIRE(kernel->parameters.size() == 2);
    CHECK(kernel->parameters[1].offset_bytes == 8);
    CHECK(kernel->parameters[1].size_bytes == 4);
    CHECK(kernel->static_shared_bytes >= 32 * 8 * sizeof(float));
    CHECK(kernel->registers > 0);
    CHECK(kernel->binary_version == device_facts(gpu.driver, gpu.device).compute_capability);
    CHECK(find_function(gpu.driver, *kernel, "tile<16, 16>") != nullptr);
    CHECK(find_function(gpu.driver, *kernel, "saxpy") != nullptr);
    CHECK(find_function(gpu.driver, *kernel, "tile<7, 7>") == nullptr);
    CHECK(function_names(gpu.driver, *kernel).size() == 4);
  }
}

TEST_CASE("A function of a library's kernel is identified as a function", "[gpu]") {
  auto& gpu = the_gpu();
  CUfunction handle = the_code().from_file(Gpu::sample("cubin"), "saxpy");
  CUfunction function = nullptr;
  REQUIRE(gpu.driver.cuKernelGetFunction(&function, reinterpret_cast<CUkernel>(handle)) ==
          CUDA_SUCCESS);
  std::string why;
  const auto kernel = identify(gpu.driver, function, why);
  REQUIRE(kernel);
  CHECK(kernel->kind == HandleKind::Function);
  CHECK(kernel->name == "saxpy");
  CHECK(kernel->parameters.size() == 4);
  CHECK(find_function(gpu.driver, *kernel, "tile<16, 16>") != nullptr);
  CHECK(kernel->code_hash == identify(gpu.driver, handle, why)->code_hash);
}

TEST_CASE("NVRTC builds a source with the options that it is given", "[gpu]") {
  auto& gpu = the_gpu();
  CUfunction first = the_code().from_source(Gpu::sample("cu"), {"-DA=1"}, "tile<32, 8>");
  CHECK(first == the_code().from_source(Gpu::sample("cu"), {"-DA=1"}, "tile<32, 8>"));
  CHECK(first != the_code().from_source(Gpu::sample("cu"), {"-DA=2"}, "tile<32, 8>"));
  gpu.launch(the_code().from_source(Gpu::sample("cu"), {}, "saxpy"), 1000);
  synchronize();
  try {
    (void)the_code().from_source(Gpu::sample("cu"), {"-Dblock=+"}, "missing<3>");
    FAIL("a kernel that does not exist was built");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("missing") != std::string::npos);
  }
}

TEST_CASE("CUPTI ties every launch to its tag", "[gpu]") {
  ActivityTimer timer(the_gpu().driver);
  CUfunction saxpy = the_code().from_file(Gpu::sample("cubin"), "saxpy");
  std::string why;
  for (int round = 0; round < 2; ++round) {
    INFO("round " << round << " " << why);
    REQUIRE(timer.open(why));
    const int launches = 3000;
    launch_timed(timer, saxpy, launches);
    synchronize();
    timer.flush(true);
    std::vector<TimedWork> work;
    timer.collect(work);
    REQUIRE(work.size() == launches);
    CHECK(timer.dropped() == 0);
    std::vector<bool> seen(launches + 1);
    for (const TimedWork& one : work) seen.at(one.tag) = true;
    CHECK(std::count(seen.begin(), seen.end(), true) == launches);
    CHECK(median(durations(work)) > 1.5e-6);
    CHECK(median(durations(work)) < 4e-6);
    timer.close();
    CHECK(timer.release());
    CHECK_FALSE(timer.attached());
  }
}

TEST_CASE("Records arrive while the program launches and nobody waits", "[gpu]") {
  ActivityTimer timer(the_gpu().driver);
  CUfunction saxpy = the_code().from_file(Gpu::sample("cubin"), "saxpy");
  std::string why;
  REQUIRE(timer.open(why));
  std::vector<TimedWork> work;
  std::size_t before_the_end = 0;
  for (int step = 0; step < 50; ++step) {
    launch_timed(timer, saxpy, 20, 4 << 20);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    timer.flush(false);
    timer.collect(work);
    before_the_end = work.size();
  }
  CHECK(before_the_end > 900);
  synchronize();
  timer.flush(true);
  timer.collect(work);
  CHECK(work.size() == 1000);
}

TEST_CASE("Event pairs come with the work's order and a plausible time", "[gpu]") {
  EventTimer timer(the_gpu().driver);
  CUfunction saxpy = the_code().from_file(Gpu::sample("cubin"), "saxpy");
  std::string why;
  REQUIRE(timer.open(why));
  launch_timed(timer, saxpy, 200, 8 << 20);
  synchronize();
  std::vector<TimedWork> work;
  timer.collect(work);
  REQUIRE(work.size() == 200);
  for (std::size_t i = 1; i < work.size(); ++i) {
    CHECK(work[i].tag == work[i - 1].tag + 1);
    CHECK(work[i].start >= work[i - 1].start);
  }
  CHECK(median(durations(work)) > 10e-6);
  CHECK(median(durations(work)) < 60e-6);
}

TEST_CASE("A span covers all work of an entry", "[gpu]") {
  auto& gpu = the_gpu();
  EventSpanTimer timer(gpu.driver);
  CUfunction saxpy = the_code().from_file(Gpu::sample("cubin"), "saxpy");
  const int entries = 40;
  for (int entry = 0; entry < entries; ++entry) {
    timer.begin(static_cast<std::uint64_t>(entry), CU_STREAM_LEGACY);
    for (int i = 0; i < 4; ++i) {
      gpu.launch(saxpy, 8 << 20);
      timer.touch(CU_STREAM_LEGACY);
    }
    timer.end();
  }
  synchronize();
  std::vector<SpanTimer::Span> spans;
  timer.collect(spans);
  REQUIRE(spans.size() == entries);
  std::vector<double> seconds;
  std::vector<double> distances;
  for (const auto& span : spans) {
    seconds.push_back(span.seconds);
    if (span.since_last > 0) distances.push_back(span.since_last);
  }
  CHECK(distances.size() == entries - 1);
  CHECK(median(seconds) > 60e-6);
  CHECK(median(seconds) < 200e-6);
  // Back to back: the distance of the ends is the span.
  CHECK(std::abs(median(distances) - median(seconds)) < 10e-6);
}

TEST_CASE("The clock is read while the GPU works", "[gpu]") {
  auto& gpu = the_gpu();
  CUfunction saxpy = the_code().from_file(Gpu::sample("cubin"), "saxpy");
  const auto clock = make_clock_monitor(gpu.driver, gpu.device);
  clock->watch(true);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  while (std::chrono::steady_clock::now() < end) {
    for (int i = 0; i < 50; ++i) gpu.launch(saxpy, Gpu::elements);
    synchronize();
  }
  const ClockReading reading = clock->read();
  clock->watch(false);
  CHECK(reading.sm_hz > 5e8);
  CHECK(reading.sm_hz < 4e9);
}

TEST_CASE("Limits of a launch follow from the device", "[gpu]") {
  auto& gpu = the_gpu();
  std::string why;
  auto kernel = identify(gpu.driver, the_code().from_file(Gpu::sample("cubin"), "saxpy"), why);
  REQUIRE(kernel);
  const DeviceFacts device = device_facts(gpu.driver, gpu.device);
  CHECK(device.num_sms > 0);
  CHECK(device.max_shared_bytes >= 96 * 1024);
  LaunchSize launch;
  launch.block = {256, 1, 1};
  launch.grid = {static_cast<std::uint32_t>(device.num_sms), 1, 1};
  CHECK(blocks_per_sm(gpu.driver, *kernel, launch) >= 1);
  CHECK(fits_in_one_wave(gpu.driver, device, *kernel, launch));
  LaunchSize larger = launch;
  larger.grid[0] *= 100;
  CHECK_FALSE(keeps_co_residency(gpu.driver, device, *kernel, launch, larger, false));
  CHECK(keeps_co_residency(gpu.driver, device, *kernel, larger, larger, false));
  CHECK(allow_dynamic_shared(gpu.driver, *kernel, max_dynamic_shared_bytes(device, *kernel)));
  CHECK_FALSE(allow_dynamic_shared(gpu.driver, *kernel, device.max_shared_bytes + 4096));
  CHECK(priority_range(gpu.driver).greatest <= priority_range(gpu.driver).least);
}
