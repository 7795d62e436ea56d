#include "catch.hpp"

#include <thread>

#include "gpu/clock/activity_buffers.hpp"
#include "gpu/clock/activity_records.hpp"

using namespace contextune;
using namespace contextune::gpu;

namespace {

constexpr std::uint64_t t0 = 1'790'000'000'000'000'000;  // a nanosecond of the year 2026

/// Records of launches by this thread that are in a log.
struct Records : ActivityRecords {
  LaunchLog log;
  std::uint64_t time = t0;

  /// A launch for `tag`, and the record of its call.
  void add_launch(std::uint32_t correlation, std::uint64_t tag) {
    REQUIRE(log.add({tag, time + 10, time + 40}));
    add_call(correlation, static_cast<std::uint32_t>(pthread_self()), time + 15, time + 35);
    resolve(log);
    time += 100;
  }
};

std::vector<TimedWork> take(Records& records) {
  std::vector<TimedWork> work;
  records.take(work);
  return work;
}

/// Takes them all.
void check_all_free(ActivityBuffers& buffers) {
  std::size_t taken = 0;
  while (buffers.acquire() != nullptr) ++taken;
  CHECK(taken == ActivityBuffers::num_buffers);
}

}  // namespace

TEST_CASE("Work finds its launch in either order", "[activity]") {
  Records records;
  records.add_launch(7, 100);
  records.add_work(7, t0, t0 + 2500, true);
  records.add_work(8, t0 + 3000, t0 + 4000, false);
  CHECK(records.launches_seen() == 1);
  records.add_launch(8, 200);
  const auto work = take(records);
  REQUIRE(work.size() == 2);
  CHECK(work[0].tag == 100);
  CHECK(work[0].kernel);
  CHECK(work[0].end - work[0].start == Approx(2.5e-6).epsilon(1e-6));
  CHECK(work[1].tag == 200);
  CHECK_FALSE(work[1].kernel);
  CHECK(work[1].start - work[0].start == Approx(3e-6).epsilon(1e-6));
  CHECK(take(records).empty());
}

TEST_CASE("Times resolve a nanosecond far from 1970", "[activity]") {
  Records records;
  records.add_launch(1, 1);
  records.add_work(1, t0, t0 + 1, true);
  const auto work = take(records);
  REQUIRE(work.size() == 1);
  CHECK((work[0].end - work[0].start) * 1e9 == Approx(1).epsilon(1e-3));
}

TEST_CASE("Every kernel of a graph launch has the launch's tag", "[activity]") {
  Records records;
  records.add_work(5, t0, t0 + 10, true);
  records.add_launch(5, 9);
  records.add_work(5, t0 + 20, t0 + 30, true);
  CHECK(take(records).size() == 2);
  CHECK(records.launches_seen() == 1);
}

TEST_CASE("Work without a usable time is counted, not reported", "[activity]") {
  Records records;
  records.add_launch(1, 1);
  records.add_work(1, 0, 0, true);
  records.add_work(1, t0, t0 - 1, true);
  records.add_work(1, t0, 0, true);
  CHECK(take(records).empty());
  CHECK(records.bad() == 3);
}

TEST_CASE("Work of launches that nobody tagged is forgotten", "[activity]") {
  Records records;
  records.add_work(3, t0, t0 + 10, true);
  records.settle();
  records.add_launch(3, 1);
  CHECK(take(records).empty());
  CHECK(records.bad() == 0);
  // Neither does it grow without end, nor push out what comes later.
  for (std::uint32_t i = 0; i < 100'000; ++i) records.add_work(10'000 + i, t0, t0 + 10, true);
  records.add_launch(10'000, 1);
  CHECK(take(records).empty());
  records.add_launch(10'000 + 99'999, 2);
  CHECK(take(records).size() == 1);
}

TEST_CASE("A correlation id that comes again belongs to the newest launch", "[activity]") {
  Records records;
  records.add_launch(1, 1);
  records.add_launch(1 + (1u << 15), 2);  // the same place in the table
  records.add_work(1 + (1u << 15), t0, t0 + 10, true);
  records.add_work(1, t0, t0 + 10, true);
  const auto work = take(records);
  REQUIRE(work.size() == 1);
  CHECK(work[0].tag == 2);
}

TEST_CASE("Buffers come back zeroed and run out without harm", "[activity]") {
  ActivityBuffers buffers;
  std::vector<std::uint8_t*> all;
  for (std::size_t i = 0; i < ActivityBuffers::num_buffers; ++i) {
    all.push_back(buffers.acquire());
    REQUIRE(all.back() != nullptr);
  }
  CHECK(buffers.acquire() == nullptr);
  all[3][0] = 1;
  all[3][99] = 1;
  buffers.release(all[3], 100);
  std::uint8_t* again = buffers.acquire();
  REQUIRE(again == all[3]);
  CHECK(again[0] == 0);
  CHECK(again[99] == 0);
  again[ActivityBuffers::buffer_bytes - 1] = 1;
  buffers.reclaim();
  std::uint8_t foreign = 1;
  buffers.release(&foreign, 1);
  CHECK(foreign == 1);
  check_all_free(buffers);
}

TEST_CASE("Threads never share a buffer", "[activity]") {
  ActivityBuffers buffers;
  std::atomic<int> clashes{0};
  std::vector<std::thread> threads;
  for (int id = 1; id <= 4; ++id) {
    threads.emplace_back([&, id] {
      for (int i = 0; i < 5000; ++i) {
        std::uint8_t* buffer = buffers.acquire();
        if (buffer == nullptr) continue;
        if (*buffer != 0) ++clashes;
        *buffer = static_cast<std::uint8_t>(id);
        std::this_thread::yield();
        if (*buffer != id) ++clashes;
        buffers.release(buffer, 1);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(clashes == 0);
  check_all_free(buffers);
}

TEST_CASE("Calls that nobody asks about are kept up to a bound, and no further", "[activity]") {
  Records records;
  for (std::uint32_t call = 0; call < ActivityRecords::most_calls; ++call)
    records.add_call(call, 1, t0, t0 + 1);
  REQUIRE(records.bad() == 0);
  records.add_call(0, 1, t0, t0 + 1);
  CHECK(records.bad() == 1);
  records.resolve(records.log);
  records.add_call(0, 1, t0, t0 + 1);
  CHECK(records.bad() == 1);
}
