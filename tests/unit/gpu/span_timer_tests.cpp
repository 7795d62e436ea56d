#include "catch.hpp"

#include <cmath>
#include <thread>

#include "fake_driver.hpp"
#include "gpu/clock/span_timer.hpp"

using namespace contextune;
using namespace contextune::gpu;

namespace {

std::vector<SpanTimer::Span> collect(EventSpanTimer& timer) {
  std::vector<SpanTimer::Span> spans;
  timer.collect(spans);
  return spans;
}

/// One entry: `seconds` of work on each of the streams.
void entry(EventSpanTimer& timer, std::uint64_t tag,
           const std::vector<std::pair<CUstream, double>>& work) {
  timer.begin(tag, work.front().first);
  for (const auto& [on, seconds] : work) {
    FakeDriver::get().work(on, seconds);
    timer.touch(on);
  }
  timer.end();
}

}  // namespace

TEST_CASE("A span lasts until the last stream's end", "[span]") {
  const Driver driver = FakeDriver::make();
  EventSpanTimer timer(driver);
  entry(timer, 5, {{stream(1), 10e-6}, {stream(2), 30e-6}, {stream(1), 5e-6}});
  CHECK(collect(timer).empty());
  FakeDriver::get().now = 20e-6;
  CHECK(collect(timer).empty());
  FakeDriver::get().synchronize();
  const auto spans = collect(timer);
  REQUIRE(spans.size() == 1);
  CHECK(spans[0].tag == 5);
  CHECK(spans[0].seconds == Approx(30e-6).epsilon(1e-3));
  CHECK(spans[0].since_last == 0);
}

TEST_CASE("Entries back to back know the distance of their ends", "[span]") {
  const Driver driver = FakeDriver::make();
  EventSpanTimer timer(driver);
  for (std::uint64_t tag = 0; tag < 3; ++tag) {
    entry(timer, tag, {{stream(1), 10e-6}});
    FakeDriver::get().work(stream(1), 4e-6);  // between the entries
  }
  FakeDriver::get().synchronize();
  const auto spans = collect(timer);
  REQUIRE(spans.size() == 3);
  CHECK(spans[2].seconds == Approx(10e-6).epsilon(1e-3));
  CHECK(spans[2].since_last == Approx(14e-6).epsilon(1e-3));
}

TEST_CASE("An entry that meets a capture gives no span, and the next one no distance", "[span]") {
  const Driver driver = FakeDriver::make();
  EventSpanTimer timer(driver);
  entry(timer, 1, {{stream(1), 10e-6}});
  timer.begin(2, stream(1));
  FakeDriver::get().capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  timer.touch(stream(1));
  timer.end();
  FakeDriver::get().capture = CU_STREAM_CAPTURE_STATUS_NONE;
  entry(timer, 3, {{stream(1), 10e-6}});
  FakeDriver::get().synchronize();
  const auto spans = collect(timer);
  REQUIRE(spans.size() == 3);
  CHECK(spans[1].tag == 3);
  CHECK(spans[1].since_last == 0);
  CHECK(spans[2].tag == 2);
  CHECK(std::isnan(spans[2].seconds));
}

TEST_CASE("Events of spans are used again", "[span]") {
  const Driver driver = FakeDriver::make();
  EventSpanTimer timer(driver);
  for (std::uint64_t tag = 0; tag < 300; ++tag) {
    entry(timer, tag, {{stream(1), 1e-6}, {stream(2), 1e-6}});
    FakeDriver::get().synchronize();
    REQUIRE(collect(timer).size() == 1);
  }
  CHECK(FakeDriver::get().events_created <= 6);
}

TEST_CASE("Per-thread default streams of two threads are two streams", "[span]") {
  const Driver driver = FakeDriver::make();
  EventSpanTimer timer(driver);
  timer.begin(1, CU_STREAM_PER_THREAD);
  FakeDriver::get().work(CU_STREAM_PER_THREAD, 10e-6);
  timer.touch(CU_STREAM_PER_THREAD);
  const int records = FakeDriver::get().records;
  std::thread([&] { timer.touch(CU_STREAM_PER_THREAD); }).join();
  CHECK(FakeDriver::get().records ==
        records + 1);  // there and then: end() cannot reach that stream
  timer.end();
  FakeDriver::get().synchronize();
  CHECK(collect(timer).size() == 1);
}

TEST_CASE("A stream that is destroyed within an entry still counts", "[span]") {
  const Driver driver = FakeDriver::make();
  EventSpanTimer timer(driver);
  timer.begin(1, stream(1));
  FakeDriver::get().work(stream(2), 50e-6);
  timer.touch(stream(2));
  timer.forget_stream(stream(2));
  const int records = FakeDriver::get().records;
  FakeDriver::get().work(stream(1), 10e-6);
  timer.touch(stream(1));
  timer.end();
  CHECK(FakeDriver::get().records == records + 1);
  FakeDriver::get().synchronize();
  const auto spans = collect(timer);
  REQUIRE(spans.size() == 1);
  CHECK(spans[0].seconds == Approx(50e-6).epsilon(1e-3));
}

TEST_CASE("Two contexts: the longer one counts", "[span]") {
  const Driver driver = FakeDriver::make();
  FakeDriver::get().contexts[stream(2)] = reinterpret_cast<CUcontext>(0x11);
  EventSpanTimer timer(driver);
  timer.begin(1, stream(1));
  FakeDriver::get().work(stream(1), 10e-6);
  timer.touch(stream(1));
  timer.touch(stream(2));
  FakeDriver::get().work(stream(2), 25e-6);
  timer.touch(stream(2));
  timer.end();
  FakeDriver::get().synchronize();
  const auto spans = collect(timer);
  REQUIRE(spans.size() == 1);
  CHECK(spans[0].seconds == Approx(25e-6).epsilon(1e-3));

  entry(timer, 2, {{stream(1), 10e-6}});
  timer.forget_context(reinterpret_cast<CUcontext>(0x10));
  FakeDriver::get().synchronize();
  CHECK(collect(timer).empty());
}

TEST_CASE("A default stream is another one in every context", "[span]") {
  const Driver driver = FakeDriver::make();
  const CUcontext first = FakeDriver::get().current;
  const auto second = reinterpret_cast<CUcontext>(0x20);
  for (const CUstream handle : {CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
    EventSpanTimer timer(driver);
    FakeDriver::get().current = first;
    timer.begin(1, handle);
    FakeDriver::get().work(handle, 10e-6);
    timer.touch(handle);
    FakeDriver::get().current = second;
    timer.touch(handle);
    timer.end();
    CHECK(FakeDriver::get().current == second);
    FakeDriver::get().synchronize();
    const auto spans = collect(timer);
    REQUIRE(spans.size() == 1);
    CHECK(spans[0].seconds == Approx(10e-6).epsilon(1e-3));
  }
}
