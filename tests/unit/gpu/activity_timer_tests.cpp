#include "catch.hpp"

#include <thread>

#include "fake_cupti.hpp"
#include "fake_driver.hpp"
#include "gpu/clock/activity_timer.hpp"

using namespace contextune;
using namespace contextune::gpu;

namespace {

void launch(ActivityTimer& timer, std::uint64_t tag, int kernels = 1,
            std::uint64_t nanoseconds = 2500) {
  timer.launch_begin(tag, CU_STREAM_LEGACY);
  FakeCupti::get().launch(kernels, nanoseconds);
  timer.launch_end(tag, CU_STREAM_LEGACY);
}

std::vector<TimedWork> collect(ActivityTimer& timer) {
  std::vector<TimedWork> work;
  timer.collect(work);
  return work;
}

struct OpenActivityTimer {
  OpenActivityTimer() { REQUIRE(timer.open(why)); }
  const Driver driver = FakeDriver::make();
  ActivityTimer timer{driver, FakeCupti::make()};
  std::string why;
};

}  // namespace

TEST_CASE_METHOD(OpenActivityTimer, "Launches come back under their tags", "[activity]") {
  for (std::uint64_t tag = 1; tag <= 1000; ++tag) launch(timer, tag, 1, 1000 + tag);
  FakeCupti::get().launch();  // not ours
  timer.flush(true);
  const auto work = collect(timer);
  REQUIRE(work.size() == 1000);
  for (std::size_t i = 0; i < work.size(); ++i) {
    REQUIRE(work[i].tag == i + 1);
    REQUIRE(work[i].end - work[i].start ==
            Approx(1e-9 * static_cast<double>(1001 + i)).epsilon(1e-4));
  }
  CHECK(FakeCupti::get().forced_flushes == 0);
  CHECK(timer.dropped() == 0);
}

TEST_CASE_METHOD(OpenActivityTimer, "Launches through the runtime are found by its calls",
                 "[activity]") {
  for (std::uint64_t tag = 1; tag <= 100; ++tag) {
    FakeCupti::get().enter_runtime();
    launch(timer, tag);
    FakeCupti::get().leave_runtime();
    FakeCupti::get().enter_runtime();
    FakeCupti::get().launch();  // not ours
    FakeCupti::get().leave_runtime();
  }
  timer.flush(true);
  const auto work = collect(timer);
  REQUIRE(work.size() == 100);
  for (std::size_t i = 0; i < work.size(); ++i) REQUIRE(work[i].tag == i + 1);
  CHECK(FakeCupti::get().forced_flushes == 0);
}

TEST_CASE_METHOD(OpenActivityTimer,
                 "Copies and fills come back under their tags, whoever waits for them",
                 "[activity]") {
  FakeCupti& cupti = FakeCupti::get();
  std::uint64_t tag = 0;
  for (const auto& [call, kind] : std::vector<std::pair<std::uint32_t, CUpti_ActivityKind>>{
           {CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2, CUPTI_ACTIVITY_KIND_MEMCPY},
           {CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoD_v2, CUPTI_ACTIVITY_KIND_MEMCPY},
           {CUPTI_DRIVER_TRACE_CBID_cuMemcpy_ptds, CUPTI_ACTIVITY_KIND_MEMCPY},
           // between devices
           {CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync, CUPTI_ACTIVITY_KIND_MEMCPY2},
           {CUPTI_DRIVER_TRACE_CBID_cuMemcpyPeerAsync, CUPTI_ACTIVITY_KIND_MEMCPY2},
           {CUPTI_DRIVER_TRACE_CBID_cuMemcpyPeer, CUPTI_ACTIVITY_KIND_MEMCPY2},
           {CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async, CUPTI_ACTIVITY_KIND_MEMSET},
           {CUPTI_DRIVER_TRACE_CBID_cuMemsetD8_v2, CUPTI_ACTIVITY_KIND_MEMSET}}) {
    cupti.launch_call = call;
    cupti.work = kind;
    launch(timer, ++tag);
  }
  timer.flush(true);
  const auto work = collect(timer);
  REQUIRE(work.size() == tag);
  for (std::size_t i = 0; i < work.size(); ++i) {
    CHECK(work[i].tag == i + 1);
    CHECK_FALSE(work[i].kernel);
  }
  CHECK(cupti.forced_flushes == 0);
}

TEST_CASE_METHOD(OpenActivityTimer, "A launch within a timed launch is that one's work",
                 "[activity]") {
  timer.launch_begin(1, CU_STREAM_LEGACY);
  launch(timer, 2);
  FakeCupti::get().launch();
  timer.launch_end(1, CU_STREAM_LEGACY);
  timer.flush(true);
  const auto work = collect(timer);
  REQUIRE(work.size() == 2);
  CHECK(work[0].tag == 1);
  CHECK(work[1].tag == 1);
  CHECK(timer.release());
}

TEST_CASE_METHOD(OpenActivityTimer, "A waiting flush forces only what is missing", "[activity]") {
  launch(timer, 1);
  FakeCupti::get().hold_back = true;
  timer.flush(false);
  CHECK(collect(timer).empty());
  timer.flush(true);
  CHECK(collect(timer).size() == 1);
  CHECK(FakeCupti::get().forced_flushes == 1);
  FakeCupti::get().hold_back = false;
  launch(timer, 2, 0);  // it failed: there is no work to wait for
  timer.flush(true);
  CHECK(FakeCupti::get().forced_flushes == 2);
  launch(timer, 3);
  timer.flush(true);
  CHECK(FakeCupti::get().forced_flushes == 2);
  CHECK(collect(timer).size() == 1);
}

TEST_CASE_METHOD(OpenActivityTimer, "Only calls that make GPU work are recorded", "[activity]") {
  const auto& silent = FakeCupti::get().silent;
  CHECK(silent.count(CUPTI_DRIVER_TRACE_CBID_cuEventQuery) == 1);
  CHECK(silent.count(CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize) == 1);
  CHECK(silent.count(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel) == 0);
  CHECK(silent.count(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz) == 0);
  CHECK(silent.count(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch) == 0);
  CHECK(silent.count(CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async) == 0);
  const auto& quiet = FakeCupti::get().silent_runtime;
  CHECK(quiet.count(CUPTI_RUNTIME_TRACE_CBID_cudaGetLastError_v3020) == 1);
  CHECK(quiet.count(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000) == 0);
  CHECK(quiet.count(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_ptsz_v11060) == 0);
  CHECK(quiet.count(CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000) == 0);
}

TEST_CASE("Closed, it costs the program no CUPTI call", "[activity]") {
  const Driver driver = FakeDriver::make();
  ActivityTimer timer(driver, FakeCupti::make());
  launch(timer, 1);
  CHECK_FALSE(FakeCupti::get().registered);
  std::string why;
  REQUIRE(timer.open(why));
  launch(timer, 2);
  timer.close();
  CHECK(FakeCupti::get().enabled.empty());
  launch(timer, 3);
  timer.flush(true);
  const auto work = collect(timer);
  REQUIRE(work.size() == 1);
  CHECK(work[0].tag == 2);
  REQUIRE(timer.open(why));
  launch(timer, 4);
  timer.flush(true);
  CHECK(collect(timer).size() == 1);
}

TEST_CASE("Release takes CUPTI out of the process and it can be opened again", "[activity]") {
  const Driver driver = FakeDriver::make();
  ActivityTimer timer(driver, FakeCupti::make());
  std::string why;
  for (int round = 1; round <= 3; ++round) {
    REQUIRE(timer.open(why));
    CHECK(timer.attached());
    const auto tag = static_cast<std::uint64_t>(round);
    FakeCupti::get().enter_runtime();  // its record comes behind that of its work
    launch(timer, tag);
    FakeCupti::get().leave_runtime();
    timer.flush(true);
    CHECK(FakeCupti::get().forced_flushes == 0);
    launch(timer, tag + 100);
    CHECK(timer.release());
    CHECK_FALSE(timer.attached());
    CHECK_FALSE(timer.is_open());
    CHECK(FakeCupti::get().finalized == round);
    const auto work = collect(timer);
    REQUIRE(work.size() == 2);
    CHECK(work[0].tag == tag);
    CHECK(work[1].tag == tag + 100);
  }
  CHECK(timer.release());
  CHECK(FakeCupti::get().finalized == 3);
}

TEST_CASE("A graph that has met CUPTI keeps it in the process", "[activity]") {
  const Driver driver = FakeDriver::make();
  std::string why;
  {
    ActivityTimer timer(driver, FakeCupti::make());
    timer.note_graph();  // not attached: nothing to spare
    REQUIRE(timer.open(why));
    CHECK(timer.release());
    REQUIRE(timer.open(why));
    timer.close();
    timer.note_graph();  // closed, but attached
    CHECK_FALSE(timer.release());
    CHECK(FakeCupti::get().finalized == 1);
    REQUIRE(timer.open(why));
    launch(timer, 1);
    timer.flush(true);
    CHECK(collect(timer).size() == 1);
  }
  {
    ActivityTimer timer(driver, FakeCupti::make());
    REQUIRE(timer.open(why));
    FakeCupti::get().launch_call = CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch;
    launch(timer, 1, 4);
    CHECK_FALSE(timer.release());
    CHECK(FakeCupti::get().finalized == 0);
    CHECK(collect(timer).size() == 4);
  }
}

TEST_CASE_METHOD(OpenActivityTimer, "Release waits for no launch: it says no", "[activity]") {
  std::thread([&] {
    timer.launch_begin(1, CU_STREAM_LEGACY);
    std::thread([&] { CHECK_FALSE(timer.release()); }).join();
    CHECK(FakeCupti::get().finalized == 0);
    timer.launch_end(1, CU_STREAM_LEGACY);
  }).join();
  CHECK(timer.release());
}

TEST_CASE("Another user of CUPTI is respected and named", "[activity]") {
  const Driver driver = FakeDriver::make();
  std::string why;
  {
    ActivityTimer timer(driver, FakeCupti::make());
    FakeCupti::get().register_result = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    CHECK_FALSE(timer.open(why));
    CHECK(why.find("another tool") != std::string::npos);
    CHECK_FALSE(timer.attached());
    CHECK(timer.release());
    CHECK(FakeCupti::get().finalized == 0);
  }
  {
    ActivityTimer timer(driver, FakeCupti::make());
    FakeCupti::get().enable_result = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    CHECK_FALSE(timer.open(why));
    CHECK(why.find("CUPTI_ERROR_FAKE") != std::string::npos);
    CHECK_FALSE(timer.is_open());
    FakeCupti::get().enable_result = CUPTI_SUCCESS;
    CHECK(timer.open(why));
  }
  ActivityTimer first(driver, FakeCupti::make());
  REQUIRE(first.open(why));
  CuptiLibrary same;
  same.cuptiActivityRegisterCallbacks = nullptr;  // never reached
  ActivityTimer second(driver, same);
  CHECK_FALSE(second.open(why));
  CHECK(first.is_open());
}

TEST_CASE_METHOD(OpenActivityTimer, "Records that CUPTI drops are counted", "[activity]") {
  FakeCupti::get().dropped = 3;
  launch(timer, 1);
  timer.flush(true);
  CHECK(timer.dropped() == 3);
}
