#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <contextune/contextune.hpp>

#include "catch.hpp"
#include "program.hpp"
#include "short_tuning.hpp"

using contextune::Config;
using contextune::ConfigSpace;
using contextune::RegionOptions;

namespace {

constexpr int n = 4096;

/// Launches `add` in blocks of the config's size and notes which sizes it was asked for.
struct Adding {
  explicit Adding(const char* name)
      : tunable(name, ConfigSpace().parameter("block", {256, 64, 128}), Launch{this}) {}

  struct Launch {
    Adding* adding;
    CUresult operator()(const Config& config) const {
      const auto block = static_cast<unsigned>(config.get_int("block"));
      adding->blocks.push_back(block);
      return Program::on().add(adding->y, n, 1.0F, 4, block);
    }
  };

  CUdeviceptr y = Program::on().floats(n);
  std::vector<unsigned> blocks;
  contextune::Tunable<Launch> tunable;
};

/// A table without refinement, confirmation and warm-up: 3 configs make 6 passes.
}  // namespace

TEST_CASE("A repeatable body runs its passes and then once with the winners", "[region]") {
  Adding adding("repeatable.add");
  int runs = 0;
  CONTEXTUAL_AUTOTUNE("repeatable", short_table()) {
    ++runs;
    adding.tunable();
  }
  CHECK(runs == 7);
  CHECK(adding.blocks == std::vector<unsigned>{256, 256, 64, 64, 128, 128, 128});
  CHECK(log_lines({"event=winner", "region=repeatable", "block=128"}).size() == 1);

  SECTION("and once in every later entry") {
    CONTEXTUAL_AUTOTUNE("repeatable", short_table()) {
      ++runs;
      adding.tunable();
    }
    CHECK(runs == 8);
    CHECK(adding.blocks.back() == 128);
  }
}

TEST_CASE("A confirmed region ends with the config that is fastest", "[region]") {
  Adding adding("confirmed.add");
  CONTEXTUAL_AUTOTUNE("confirmed", {.repeatable = true, .n_warmup = 1, .n_repeat = 2}) {
    adding.tunable();
  }
  CHECK(adding.blocks.back() == 128);
  CHECK(log_lines({"event=confirm", "region=confirmed", "verdict=kept"}).size() == 1);
}

TEST_CASE("A region gives the value of its last run", "[region]") {
  Program::on();
  int runs = 0;
  Adding adding("value.add");
  const int value = contextune::region("value", short_table(), [&] {
    adding.tunable();
    return ++runs;
  });
  CHECK(value == 7);
  CHECK(runs == 7);
}

TEST_CASE("A region gives values that can only be moved, references and nothing", "[region]") {
  Program::on();
  int runs = 0;
  auto owned = contextune::region("move_only", {.repeatable = true},
                                  [&] { return std::make_unique<int>(++runs); });
  CHECK(*owned == runs);

  int target = 0;
  int& reference = contextune::region("reference", {}, [&]() -> int& { return target; });
  CHECK(&reference == &target);

  bool ran = false;
  contextune::region("nothing", {}, [&] { ran = true; });
  CHECK(ran);
}

TEST_CASE("A value of an earlier run is gone before the body runs again", "[region]") {
  struct Counted {
    explicit Counted(int& count) : count_(&count) { ++*count_; }
    Counted(Counted&& other) noexcept : count_(std::exchange(other.count_, nullptr)) {}
    Counted& operator=(Counted&&) = delete;
    ~Counted() {
      if (count_ != nullptr) --*count_;
    }
    int* count_;
  };
  Adding adding("counted.add");
  int alive = 0;
  int most_before = 0;
  {
    const Counted last = contextune::region("counted", short_table(), [&] {
      most_before = std::max(most_before, alive);
      adding.tunable();
      return Counted(alive);
    });
    CHECK(alive == 1);
  }
  CHECK(adding.blocks.size() == 7);
  CHECK(most_before == 0);
  CHECK(alive == 0);
}

TEST_CASE("A body that may not be repeated runs once an entry, and each entry is a pass",
          "[region]") {
  Adding adding("live.add");
  const RegionOptions options{
      .n_warmup = 0, .n_repeat = 2, .refine = false, .confirm = false, .max_slowdown = 0.0};
  int runs = 0;
  for (int entry = 0; entry < 200; ++entry) {
    CONTEXTUAL_AUTOTUNE("live", options) {
      ++runs;
      adding.tunable();
      Program::synchronise();
    }
  }
  CHECK(runs == 200);
  CHECK(Program::read(adding.y, 1).front() == 200.0F);
  CHECK(adding.blocks.front() == 256);
  CHECK(log_lines({"event=fallback", "reason=not_repeatable", "region=live"}).size() == 1);
  CHECK(std::count(adding.blocks.begin(), adding.blocks.end(), 64U) >= 2);
  CHECK(adding.blocks.back() == 128);
}

TEST_CASE("Leaving the body early ends the search without winners", "[region]") {
  Adding adding("left.add");
  int runs = 0;

  SECTION("by break") {
    CONTEXTUAL_AUTOTUNE("left_by_break", short_table()) {
      adding.tunable();
      if (++runs == 3) break;
    }
    CHECK(runs == 3);
    CONTEXTUAL_AUTOTUNE("left_by_break", short_table()) {
      ++runs;
      adding.tunable();
    }
    CHECK(runs == 4);
    CHECK(adding.blocks.back() == 256);
    CHECK(log_lines({"event=fallback", "reason=body_left", "region=left_by_break"}).size() == 1);
  }
  SECTION("by return") {
    const auto leave = [&] {
      CONTEXTUAL_AUTOTUNE("left_by_return", short_table()) {
        adding.tunable();
        if (++runs == 3) return 5;
      }
      return 6;
    };
    CHECK(leave() == 5);
    CHECK(runs == 3);
    CHECK(leave() == 6);
    CHECK(adding.blocks.back() == 256);
  }
  SECTION("by an exception, which goes on to the caller") {
    const auto fail = [&] {
      return contextune::region("left_by_exception", short_table(), [&]() -> int {
        adding.tunable();
        if (++runs == 3) throw std::out_of_range("mine");
        return runs;
      });
    };
    CHECK_THROWS_AS(fail(), std::out_of_range);
    CHECK(runs == 3);
    CHECK(fail() == 4);
    CHECK(adding.blocks.back() == 256);
  }
}

TEST_CASE("continue ends a pass as reaching the end of the body does", "[region]") {
  Adding adding("continued.add");
  CONTEXTUAL_AUTOTUNE("continued", short_table()) {
    adding.tunable();
    if (!adding.blocks.empty()) continue;
    FAIL("not reached");
  }
  CHECK(adding.blocks.size() == 7);
}

TEST_CASE("A region inside another is tuned by itself", "[region]") {
  Adding inner("nested.inner");
  Adding outer("nested.outer");
  CONTEXTUAL_AUTOTUNE("outer", short_table()) {
    outer.tunable();
    CONTEXTUAL_AUTOTUNE("inner", short_table()) {
      inner.tunable();
    }
  }
  CHECK(outer.blocks.size() == 7);
  CHECK(outer.blocks.back() == 128);
  CHECK(inner.blocks.size() == 7 + 6);
  CHECK(inner.blocks.back() == 128);
}

TEST_CASE("A region entered from inside itself is part of its outer entry", "[region]") {
  Adding adding("recursive.add");
  int inner_runs = 0;
  int outer_runs = 0;
  CONTEXTUAL_AUTOTUNE("recursive", short_table()) {
    ++outer_runs;
    CONTEXTUAL_AUTOTUNE("recursive", short_table()) {
      ++inner_runs;
      adding.tunable();
    }
  }
  CHECK(outer_runs == 7);
  CHECK(inner_runs == 7);
  CHECK(adding.blocks.back() == 128);
}

TEST_CASE("Threads in regions of their own are tuned at the same time", "[region]") {
  std::vector<std::thread> threads;
  std::vector<unsigned> last(3);
  for (std::size_t i = 0; i < last.size(); ++i) {
    threads.emplace_back([i, &last] {
      Program::on();
      const std::string name = "thread" + std::to_string(i);
      Adding adding((name + ".add").c_str());
      CONTEXTUAL_AUTOTUNE(name,
                          {.repeatable = true, .n_warmup = 0, .refine = false, .confirm = false}) {
        adding.tunable();
      }
      last[i] = adding.blocks.back();
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(last == std::vector<unsigned>(3, 128));
}

TEST_CASE("What a second thread does in a region meanwhile runs once and right", "[region]") {
  Adding adding("shared.add");
  int runs_of_second = 0;
  CONTEXTUAL_AUTOTUNE("shared", short_table()) {
    adding.tunable();
    if (runs_of_second > 0) continue;
    std::thread([&] {
      Program::on();
      CONTEXTUAL_AUTOTUNE("shared", short_table()) {
        ++runs_of_second;
      }
    }).join();
  }
  CHECK(runs_of_second == 1);
  CHECK(adding.blocks.back() == 128);
}

TEST_CASE("An option that cannot have its value is refused before the body runs", "[region]") {
  Program::on();
  bool ran = false;
  const auto enter = [&](const RegionOptions& options) {
    CONTEXTUAL_AUTOTUNE("refused", options) {
      ran = true;
    }
  };
  CHECK_THROWS_AS(enter({.n_repeat = 0}), contextune::Error);
  CHECK_THROWS_AS(enter({.n_warmup = -1}), contextune::Error);
  CHECK_THROWS_AS(enter({.margin = 2.0}), contextune::Error);
  CHECK_FALSE(ran);
  enter({});
  CHECK(ran);
}
