#include <chrono>
#include <future>

#include "catch.hpp"
#include "fake_driver.hpp"
#include "gpu/clock/event_timer.hpp"

using namespace contextune;
using namespace contextune::gpu;

namespace {

void launch(EventTimer& timer, std::uint64_t tag, CUstream on, double seconds) {
  timer.launch_begin(tag, on);
  FakeDriver::get().work(on, seconds);
  timer.launch_end(tag, on);
}

std::vector<TimedWork> collect(EventTimer& timer) {
  std::vector<TimedWork> work;
  timer.collect(work);
  return work;
}

struct OpenEventTimer {
  OpenEventTimer() { REQUIRE(timer.open(why)); }
  const Driver driver = FakeDriver::make();
  EventTimer timer{driver};
  std::string why;
};

}  // namespace

TEST_CASE_METHOD(OpenEventTimer,
                 "A launch is reported once its events have completed, and never waited for",
                 "[events]") {
  launch(timer, 1, stream(1), 10e-6);
  launch(timer, 2, stream(1), 20e-6);
  CHECK(collect(timer).empty());
  FakeDriver::get().now = 15e-6;
  auto work = collect(timer);
  REQUIRE(work.size() == 1);
  CHECK(work[0].tag == 1);
  CHECK(work[0].end - work[0].start == Approx(10e-6).epsilon(1e-4));
  FakeDriver::get().synchronize();
  work = collect(timer);
  REQUIRE(work.size() == 1);
  CHECK(work[0].tag == 2);
  CHECK(work[0].start == Approx(10e-6).epsilon(1e-3));
  CHECK(FakeDriver::get().mode_at_query == CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK(FakeDriver::get().mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
}

TEST_CASE_METHOD(OpenEventTimer, "Events are used again", "[events]") {
  for (std::uint64_t tag = 1; tag <= 500; ++tag) {
    launch(timer, tag, stream(1), 1e-6);
    FakeDriver::get().synchronize();
    REQUIRE(collect(timer).size() == 1);
  }
  CHECK(FakeDriver::get().events_created <= 4);
}

TEST_CASE("Nothing is recorded while a stream is captured or the timer is closed", "[events]") {
  const Driver driver = FakeDriver::make();
  EventTimer timer(driver);
  launch(timer, 1, stream(1), 1e-6);
  CHECK(FakeDriver::get().records == 0);
  std::string why;
  REQUIRE(timer.open(why));
  FakeDriver::get().capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  launch(timer, 2, stream(1), 1e-6);
  FakeDriver::get().capture = CU_STREAM_CAPTURE_STATUS_NONE;
  FakeDriver::get().capture_result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  launch(timer, 3, CU_STREAM_LEGACY, 1e-6);
  CHECK(FakeDriver::get().records == 0);
  FakeDriver::get().synchronize();
  CHECK(collect(timer).empty());
}

TEST_CASE_METHOD(OpenEventTimer, "A driver that refuses events costs the sample only", "[events]") {
  timer.launch_begin(1, stream(1));
  FakeDriver::get().record_result = CUDA_ERROR_INVALID_HANDLE;
  timer.launch_end(1, stream(1));
  FakeDriver::get().record_result = CUDA_SUCCESS;
  CHECK(timer.dropped() == 1);
  launch(timer, 2, stream(1), 1e-6);
  FakeDriver::get().synchronize();
  REQUIRE(collect(timer).size() == 1);
}

TEST_CASE_METHOD(OpenEventTimer, "Times stay exact over minutes of running", "[events]") {
  double last = 0;
  for (std::uint64_t tag = 1; tag <= 3000; ++tag) {
    FakeDriver::get().work(stream(1), 0.1);  // not timed
    launch(timer, tag, stream(1), 3e-6);
    FakeDriver::get().synchronize();
    const auto work = collect(timer);
    REQUIRE(work.size() == 1);
    REQUIRE(work[0].end - work[0].start == Approx(3e-6).epsilon(0.05));
    if (tag > 1) REQUIRE(work[0].start - last == Approx(0.100003).epsilon(1e-6));
    last = work[0].start;
  }
}

TEST_CASE("Streams of several contexts keep their own events", "[events]") {
  const Driver driver = FakeDriver::make();
  auto& fake = FakeDriver::get();
  CUcontext other = reinterpret_cast<CUcontext>(0x11);
  fake.contexts[stream(2)] = other;
  EventTimer timer(driver);
  std::string why;
  REQUIRE(timer.open(why));
  launch(timer, 1, stream(1), 5e-6);
  launch(timer, 2, stream(2), 7e-6);
  fake.synchronize();
  const auto work = collect(timer);
  REQUIRE(work.size() == 2);
  CHECK(work[1].end - work[1].start == Approx(7e-6).epsilon(1e-4));
  CHECK(fake.current == reinterpret_cast<CUcontext>(0x10));

  launch(timer, 3, stream(1), 5e-6);
  launch(timer, 4, stream(2), 7e-6);
  timer.forget_context(other);
  for (auto event = fake.events.begin(); event != fake.events.end();) {
    event = event->second.context == other ? fake.events.erase(event) : std::next(event);
  }
  fake.synchronize();
  const auto rest = collect(timer);
  REQUIRE(rest.size() == 1);
  CHECK(rest[0].tag == 3);
  CHECK(timer.dropped() == 1);
}

TEST_CASE_METHOD(OpenEventTimer,
                 "A context that goes away while times are read is forgotten all the same",
                 "[events]") {
  launch(timer, 1, stream(1), 5e-6);
  std::future<void> forgotten;
  FakeDriver::get().at_query = [&] {
    forgotten = std::async(std::launch::async,
                           [&] { timer.forget_context(reinterpret_cast<CUcontext>(0x10)); });
    static_cast<void>(forgotten.wait_for(std::chrono::milliseconds(100)));
  };
  CHECK(collect(timer).empty());
  forgotten.get();
  FakeDriver::get().synchronize();
  CHECK(collect(timer).empty());
  CHECK(timer.dropped() == 1);
}
