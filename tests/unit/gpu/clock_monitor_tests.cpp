#include "catch.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "gpu/clock/clock_monitor.hpp"

using namespace contextune;
using namespace contextune::gpu;
using namespace std::chrono_literals;

namespace {

/// Shared with the monitor's thread, which may outlive a test.
struct FakeClock {
  std::atomic<double> hz{1e9};
  std::atomic<bool> throttled{false};
  std::atomic<bool> idle{false};
  std::atomic<int> connects{0};
  std::atomic<int> reads{0};
  std::atomic<bool> signals_blocked{false};
};

std::unique_ptr<ClockMonitor> monitor_of(const std::shared_ptr<FakeClock>& clock) {
  return make_clock_monitor([clock]() -> ReadClock {
    ++clock->connects;
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    clock->signals_blocked =
        sigismember(&blocked, SIGTERM) == 1 && sigismember(&blocked, SIGUSR1) == 1;
    return [clock]() -> std::optional<ClockReading> {
      ++clock->reads;
      if (clock->idle) return std::nullopt;
      return ClockReading{clock->hz, clock->throttled};
    };
  });
}

void wait_for_reads(FakeClock& clock, int count) {
  const int before = clock.reads;
  for (int i = 0; i < 2000 && clock.reads - before < count; ++i) std::this_thread::sleep_for(1ms);
  REQUIRE(clock.reads - before >= count);
}

}  // namespace

TEST_CASE("The worst reading since the last one is reported", "[clock]") {
  const auto clock = std::make_shared<FakeClock>();
  const auto monitor = monitor_of(clock);
  CHECK(monitor->read().sm_hz == 0);
  monitor->watch(true);
  wait_for_reads(*clock, 2);
  CHECK(monitor->read().sm_hz == 1e9);
  clock->hz = 7e8;
  clock->throttled = true;
  wait_for_reads(*clock, 2);
  clock->hz = 9e8;
  clock->throttled = false;
  wait_for_reads(*clock, 2);
  const ClockReading worst = monitor->read();
  CHECK(worst.sm_hz == 7e8);
  CHECK(worst.throttled);
  wait_for_reads(*clock, 2);
  CHECK(monitor->read().sm_hz == 9e8);
  CHECK_FALSE(monitor->read().throttled);
}

TEST_CASE("Idling does not count", "[clock]") {
  const auto clock = std::make_shared<FakeClock>();
  const auto monitor = monitor_of(clock);
  monitor->watch(true);
  wait_for_reads(*clock, 2);
  clock->idle = true;
  wait_for_reads(*clock, 3);
  CHECK(monitor->read().sm_hz == 1e9);
}

TEST_CASE("Nothing runs before watching and after it", "[clock]") {
  const auto clock = std::make_shared<FakeClock>();
  const auto monitor = monitor_of(clock);
  std::this_thread::sleep_for(20ms);
  CHECK(clock->connects == 0);
  monitor->watch(true);
  wait_for_reads(*clock, 1);
  CHECK(clock->signals_blocked);
  monitor->watch(false);
  const int reads = clock->reads;
  std::this_thread::sleep_for(30ms);
  CHECK(clock->reads <= reads + 1);  // one may have been under way
  monitor->watch(true);
  wait_for_reads(*clock, 1);
}

TEST_CASE("A forked child neither reads nor hangs", "[clock]") {
  const auto clock = std::make_shared<FakeClock>();
  const auto monitor = monitor_of(clock);
  monitor->watch(true);
  wait_for_reads(*clock, 1);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    monitor->watch(false);
    monitor->watch(true);
    _exit(monitor->read().sm_hz == 0 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
