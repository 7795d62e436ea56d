#include "gpu/clock/stream_hold.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "fake_driver.hpp"

using namespace contextune::gpu;

namespace {

alignas(8) std::uint32_t pinned = 0;

bool is_reached(std::uint32_t value) {
  return std::atomic_ref(pinned).load() >= value;
}

/// Waits in the call itself, as a driver whose queue is full does. CUDA_ERROR_TIMEOUT after 5 s.
CUresult wait_in_the_call(CUstream, CUdeviceptr, cuuint32_t value, unsigned) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!is_reached(value)) {
    if (std::chrono::steady_clock::now() > end) return CUDA_ERROR_TIMEOUT;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return CUDA_SUCCESS;
}

Driver driver_that(decltype(&cuStreamWaitValue32) wait) {
  Driver driver = FakeDriver::make();
  driver.cuMemHostAlloc = [](void** memory, size_t, unsigned) {
    *memory = &pinned;
    return CUDA_SUCCESS;
  };
  driver.cuMemAlloc = [](CUdeviceptr*, size_t) { return CUDA_ERROR_OUT_OF_MEMORY; };
  driver.cuStreamWaitValue32 = wait;
  return driver;
}

int num_waits = 0;
constexpr StreamHold::Refusal added = StreamHold::Refusal::None;

/// Streams wait for nothing, and it is counted how often they would.
Driver driver_that_counts() {
  num_waits = 0;
  return driver_that([](CUstream, CUdeviceptr, cuuint32_t, unsigned) {
    ++num_waits;
    return CUDA_SUCCESS;
  });
}

}  // namespace

TEST_CASE("A hold ends by itself, also while the driver waits for what it holds", "[hold]") {
  const Driver driver = driver_that(&wait_in_the_call);
  StreamHold hold(driver);
  REQUIRE(hold.begin(20e-3));
  CHECK(hold.add(stream(1)) == added);
  CHECK_FALSE(hold.release());
}

TEST_CASE("A stream waits once in a hold, the default stream like any other", "[hold]") {
  const Driver driver = driver_that_counts();
  StreamHold hold(driver);
  for (int entry = 1; entry <= 2; ++entry) {
    REQUIRE(hold.begin(60));
    for (int work = 0; work < 3; ++work) {
      CHECK(hold.add(CU_STREAM_LEGACY) == added);
      CHECK(hold.add(stream(1)) == added);
    }
    CHECK(hold.release());
    CHECK(num_waits == 2 * entry);
  }
}

TEST_CASE("Whoever holds streams says when they go on", "[hold]") {
  static std::uint32_t waits_for = 0;
  const Driver driver = driver_that([](CUstream, CUdeviceptr, cuuint32_t value, unsigned) {
    waits_for = value;
    return CUDA_SUCCESS;
  });
  StreamHold hold(driver);
  for (int entry = 0; entry < 3; ++entry) {
    REQUIRE(hold.begin(60));
    CHECK(hold.add(stream(1)) == added);
    CHECK_FALSE(is_reached(waits_for));
    CHECK(hold.release());
    CHECK(is_reached(waits_for));
  }
}

TEST_CASE("A stream that gets the handle of a destroyed one is held like any other", "[hold]") {
  const Driver driver = driver_that_counts();
  StreamHold hold(driver);
  REQUIRE(hold.begin(60));
  CHECK(hold.add(stream(1)) == added);
  hold.forget_stream(stream(1));
  CHECK(hold.add(stream(1)) == added);
  CHECK(num_waits == 2);
}

TEST_CASE("After a join each stream goes on behind what all have had before, new ones too",
          "[hold]") {
  static std::map<CUstream, int> waits;
  Driver driver =
      driver_that([](CUstream, CUdeviceptr, cuuint32_t, unsigned) { return CUDA_SUCCESS; });
  driver.cuStreamWaitEvent = [](CUstream stream, CUevent, unsigned) {
    ++waits[stream];
    return CUDA_SUCCESS;
  };
  StreamHold hold(driver);
  for (int entry = 1; entry <= 2; ++entry) {
    REQUIRE(hold.begin(60));
    for (unsigned id = 1; id <= 3; ++id) CHECK(hold.add(stream(id)) == added);
    hold.forget_stream(stream(3));
    hold.join();
    CHECK(hold.add(stream(1)) == added);
    CHECK(hold.add(stream(3)) == added);
    for (unsigned id = 1; id <= 3; ++id) CHECK(waits[stream(id)] == 3 * entry);
    CHECK(hold.release());
  }
}

TEST_CASE("The per-thread streams of threads that follow one another are all held", "[hold]") {
  const Driver driver = driver_that_counts();
  StreamHold hold(driver);
  REQUIRE(hold.begin(60));
  for (int thread = 0; thread < 3; ++thread) {
    std::thread([&] {
      CHECK(hold.add(CU_STREAM_PER_THREAD) == added);
      CHECK(hold.add(CU_STREAM_PER_THREAD) == added);
    }).join();
  }
  CHECK(num_waits == 3);
}

TEST_CASE("A stream is not held where that would ruin a capture", "[hold]") {
  const Driver driver = driver_that_counts();
  FakeDriver::get().capture_result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  StreamHold hold(driver);
  REQUIRE(hold.begin(60));
  CHECK(hold.add(CU_STREAM_LEGACY) == StreamHold::Refusal::Capture);
  CHECK(num_waits == 0);
}

TEST_CASE("Work of the hold's own goes only to streams of the context that has its memory",
          "[hold]") {
  static std::vector<CUstream> filled;
  Driver driver =
      driver_that([](CUstream, CUdeviceptr, cuuint32_t, unsigned) { return CUDA_SUCCESS; });
  driver.cuMemAlloc = [](CUdeviceptr* memory, size_t) {
    *memory = 0x1000;
    return CUDA_SUCCESS;
  };
  driver.cuMemsetD8Async = [](CUdeviceptr, unsigned char, size_t, CUstream stream) {
    filled.push_back(stream);
    return CUDA_SUCCESS;
  };
  FakeDriver::get().contexts[stream(2)] = reinterpret_cast<CUcontext>(0x20);
  StreamHold hold(driver);
  REQUIRE(hold.begin(60));
  CHECK(hold.add(stream(1)) == added);
  CHECK(hold.add(stream(2)) == added);
  CHECK_FALSE(filled.empty());
  CHECK(std::ranges::count(filled, stream(2)) == 0);
}
