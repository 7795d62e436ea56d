#include <stdexcept>
#include <string>
#include <vector>

#include <contextune/contextune.hpp>

#include "catch.hpp"

using contextune::Config;
using contextune::ConfigSpace;
using contextune::Tunable;

// The program runs without a driver.

TEST_CASE("Without a driver a region runs its body once", "[passthrough]") {
  CHECK(contextune_current_state() == contextune_state_off);
  CHECK(std::string(contextune_state_reason()) != "");
  int runs = 0;
  int restores = 0;
  int memory = 0;
  CONTEXTUAL_AUTOTUNE("body", {.restore = [&] { ++restores; }}) {
    ++runs;
  }
  CONTEXTUAL_AUTOTUNE("body", {.restore = {{&memory, sizeof memory}}}) {
    ++runs;
  }
  CONTEXTUAL_AUTOTUNE("body", {.repeatable = true, .n_warmup = 5}) {
    CONTEXTUAL_AUTOTUNE("inner", {.repeatable = true}) {
      ++runs;
    }
  }
  CHECK(runs == 3);
  CHECK(restores == 0);
  CHECK(contextune::region("value", {.repeatable = true}, [] { return std::string("x"); }) == "x");
}

TEST_CASE("Without a driver the body may be left as any block", "[passthrough]") {
  const auto leave = [] {
    CONTEXTUAL_AUTOTUNE("left", {.repeatable = true}) return 5;
    return 6;
  };
  CHECK(leave() == 5);
  CHECK_THROWS_AS(contextune::region("left", {}, []() -> int { throw std::out_of_range("mine"); }),
                  std::out_of_range);
}

TEST_CASE("Without a driver a tunable runs its default", "[passthrough]") {
  Tunable tunable("default", ConfigSpace().parameter("x", {7, 8}),
                  [](const Config& config) { return config.get_int("x"); });
  CHECK(tunable() == 7);
  CONTEXTUAL_AUTOTUNE("tunable", {.repeatable = true}) CHECK(tunable() == 7);
}

TEST_CASE("Without a driver a function runs once, with the first config that is kept",
          "[passthrough]") {
  std::vector<std::int64_t> seen;
  auto function = contextune::autotune(
      "function", ConfigSpace().parameter("x", {7, 8, 9}), [](int n) { return n; },
      [](const Config& config, int n) { return config.get_int("x") > n; },
      [&](const Config& config, int) {
        seen.push_back(config.get_int("x"));
        return std::to_string(seen.back());
      },
      {.hints = {1}});
  CHECK(function(1) == "7");
  CHECK(function(7) == "8");
  CHECK(function(7) == "8");
  CHECK(seen == std::vector<std::int64_t>{7, 8, 8});
  CHECK_THROWS_AS(function(9), contextune::Error);

  SECTION("and what it throws is the caller's") {
    auto broken = contextune::autotune("broken", ConfigSpace().parameter("x", {7, 8}),
                                       [](const Config&) { throw std::out_of_range("mine"); });
    CHECK_THROWS_AS(broken(), std::out_of_range);
  }
  SECTION("also where its space depends on the device") {
    contextune::Device device;
    auto of_device = contextune::autotune(
        "of_device",
        [&](const contextune::Device& one) {
          device = one;
          return ConfigSpace().parameter("x", {1, 2});
        },
        [](const Config& config) { return config.get_int("x"); });
    device.num_sms = 5;
    CHECK(of_device() == 1);
    CHECK(device.num_sms == 0);
    CHECK(contextune::current_device().name == "");
  }
}

TEST_CASE("Without a driver nobody is joined", "[passthrough]") {
  CHECK_FALSE(contextune::join(nullptr));
  CHECK(std::string(contextune_error()) != "");
}

TEST_CASE("Without a driver a kernel can be declared", "[passthrough]") {
  CHECK_NOTHROW(contextune::Kernel("saxpy")
                    .space(ConfigSpace().parameter("block", {64, 128}))
                    .apply([](const Config&, contextune::LaunchEdit&) {})
                    .declare());
}

TEST_CASE("An entry that was never begun runs its body once") {
  contextune_entry entry{};
  int runs = 0;
  static_cast<void>(contextune_region_option(&entry, "repeatable", "true"));
  static_cast<void>(contextune_region_restore_buffer(&entry, &runs, sizeof runs));
  CHECK(contextune_region_tunes(&entry) == 0);
  while (contextune_region_next(&entry) != 0) ++runs;
  contextune_region_end(&entry);
  CHECK(runs == 1);
}
