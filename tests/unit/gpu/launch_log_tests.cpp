#include <pthread.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "catch.hpp"
#include "gpu/driver/launch_log.hpp"

using namespace contextune::gpu;

namespace {

std::uint32_t this_thread() {
  return static_cast<std::uint32_t>(pthread_self());
}

}  // namespace

TEST_CASE("A driver call belongs to the launch around it, a runtime call to the one within",
          "[launch_log]") {
  LaunchLog log;
  REQUIRE(log.add({1, 100, 200}));
  REQUIRE(log.add({2, 200, 300}));
  CHECK(log.find_tag(this_thread(), 110, 190) == 1u);
  CHECK(log.find_tag(this_thread(), 200, 300) == 2u);
  CHECK(log.find_tag(this_thread(), 90, 199) == std::nullopt);  // crosses one
  CHECK(log.find_tag(this_thread(), 90, 200) == 1u);
  CHECK(log.find_tag(this_thread(), 199, 310) == 2u);
  CHECK(log.find_tag(this_thread(), 301, 310) == std::nullopt);
  CHECK(log.find_tag(this_thread() + 4096, 110, 190) == std::nullopt);
  CHECK(log.find_tag(static_cast<std::uint32_t>(gettid()), 110, 190) == 1u);
  CHECK(log.find_tag(this_thread(), 110, 190) == 1u);  // a launch may make several calls
}

TEST_CASE("A full log refuses, and has room again once it was read", "[launch_log]") {
  LaunchLog log;
  std::uint64_t time = 1;
  std::uint64_t tag = 0;
  while (log.add({tag, time, time + 1})) {
    ++tag;
    time += 2;
    REQUIRE(tag < 1'000'000);
  }
  CHECK(tag >= 1000);
  CHECK(log.find_tag(this_thread(), 1, 2) == 0u);
  CHECK(log.add({tag, time, time + 1}));
  CHECK(log.find_tag(this_thread(), time, time + 1) == tag);
}

TEST_CASE("Two logs of one thread do not mix", "[launch_log]") {
  LaunchLog first;
  REQUIRE(first.add({1, 1, 2}));
  {
    LaunchLog second;
    REQUIRE(second.add({2, 1, 2}));
    REQUIRE(first.add({3, 3, 4}));
    CHECK(second.find_tag(this_thread(), 1, 2) == 2u);
    CHECK(second.find_tag(this_thread(), 3, 4) == std::nullopt);
  }
  CHECK(first.find_tag(this_thread(), 3, 4) == 3u);
}

TEST_CASE("A thread's launches are found after another has got its address", "[launch_log]") {
  LaunchLog log;
  std::vector<std::uint32_t> numbers;
  std::vector<std::uint32_t> handles;
  for (std::uint64_t i = 0; i < 8; ++i) {
    std::thread([&] {
      numbers.push_back(static_cast<std::uint32_t>(gettid()));
      handles.push_back(this_thread());
      CHECK(log.add({i, 10 * i, 10 * i + 5}));
    }).join();
  }
  for (std::uint64_t i = 0; i < 8; ++i) {
    CHECK(log.find_tag(numbers[i], 10 * i + 1, 10 * i + 4) == i);
    CHECK(log.find_tag(handles[i], 10 * i + 1, 10 * i + 4) == i);
  }
  CHECK(log.find_tag(numbers[0], 11, 14) == std::nullopt);
}

TEST_CASE("Threads come and go while the log is read", "[launch_log]") {
  LaunchLog log;
  constexpr std::uint64_t launches = 2000;
  for (int round = 0; round < 5; ++round) {
    std::vector<std::uint32_t> ids(3);
    std::vector<std::thread> threads;
    for (std::uint64_t i = 0; i < ids.size(); ++i) {
      threads.emplace_back([&, i, round] {
        ids[i] = this_thread();
        const std::uint64_t base = (static_cast<std::uint64_t>(round) * 10 + i) * 1'000'000;
        for (std::uint64_t n = 0; n < launches; ++n) {
          (void)log.add({base + n, base + n * 10, base + n * 10 + 5});
        }
      });
    }
    for (int i = 0; i < 100; ++i) (void)log.find_tag(this_thread(), 1, 2);
    for (auto& thread : threads) thread.join();
    for (std::uint64_t i = 0; i < ids.size(); ++i) {
      const std::uint64_t base = (static_cast<std::uint64_t>(round) * 10 + i) * 1'000'000;
      CHECK(log.find_tag(ids[i], base + 70, base + 75) == base + 7);
    }
  }
}
