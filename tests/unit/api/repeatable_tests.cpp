// A function that does not say whether it may be run again: its default shows that.
#include <atomic>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <contextune/contextune.hpp>

#include "catch.hpp"
#include "program.hpp"
#include "short_tuning.hpp"

using contextune::autotune;
using contextune::Config;

namespace {

constexpr int n = 64;

/// The functions of these tests, and what they were run with.
struct Function {
  CUdeviceptr y = Program::on().floats(n);
  std::vector<unsigned> blocks;

  unsigned block_of(const Config& config) {
    blocks.push_back(static_cast<unsigned>(config.get_int("block")));
    return blocks.back();
  }
  /// y += 1: another run adds another 1.
  auto in_place() {
    return
        [this](const Config& config) { return Program::on().add(y, n, 1.0F, 1, block_of(config)); };
  }
  /// y = 1, however often it runs.
  auto out_of_place() {
    return [this](const Config& config) {
      return Program::on().launch("set", y, n, 1.0F, 1, block_of(config));
    };
  }
  [[nodiscard]] std::vector<float> result() const { return Program::read(y, n); }
};

std::vector<float> all(float value) {
  return std::vector<float>(n, value);
}

using Blocks = std::vector<unsigned>;

}  // namespace

TEST_CASE(
    "A function that changes its inputs and does not say so is not tuned, and its sums are right",
    "[repeatable]") {
  Function adds;
  auto add = autotune("in_place", blocks(), adds.in_place(), short_runs({}));
  CHECK(add() == CUDA_SUCCESS);
  CHECK(adds.result() == all(1.0F));
  CHECK(adds.blocks == Blocks{256, 256});
  const std::string error = contextune_error();
  CHECK(error.find("function 'in_place' is not tuned") != error.npos);
  CHECK(error.find(".restore") != error.npos);
  CHECK(log_lines({"event=fallback", "reason=not_repeatable", "in_place", "a second run"}).size() ==
        1);

  add();
  CHECK(adds.result() == all(2.0F));
  CHECK(adds.blocks == Blocks{256, 256, 256});
}

TEST_CASE("A function that leaves the same is tuned without a word", "[repeatable]") {
  Function sets;
  auto set = autotune("out_of_place", blocks(), sets.out_of_place(), short_runs({}));
  set();
  CHECK(sets.result() == all(1.0F));
  CHECK(sets.blocks.back() == 128);
  CHECK(log_lines({"event=winner", "site=out_of_place", "block=128"}).size() == 1);
  CHECK(log_lines({"reason=not_repeatable", "out_of_place"}).empty());
}

TEST_CASE("A function whose author has said how it is repeated is not run to find out",
          "[repeatable]") {
  Function adds;
  SECTION("by repeatable") {
    auto add = autotune("said", blocks(), adds.in_place(), short_runs({.repeatable = true}));
    add();
    CHECK(adds.result() == all(static_cast<float>(adds.blocks.size())));
  }
  SECTION("by restore") {
    const contextune::DeviceSpan span{reinterpret_cast<void*>(adds.y), n * sizeof(float)};
    auto add = autotune("restored", blocks(), adds.in_place(), short_runs({.restore = {span}}));
    add();
    CHECK(adds.result() == all(1.0F));
  }
  CHECK(adds.blocks.back() == 128);
}

TEST_CASE("What a function gives where it is not tuned is what its first run gave",
          "[repeatable]") {
  Function adds;
  int runs = 0;
  auto add = autotune(
      "value", blocks(),
      [&](const Config& config) {
        adds.in_place()(config);
        return std::to_string(++runs);
      },
      short_runs({}));
  CHECK(add() == "1");
  CHECK(runs == 2);
  CHECK(adds.result() == all(1.0F));
}

TEST_CASE("A second run that throws is not the caller's", "[repeatable]") {
  Function adds;
  int runs = 0;
  auto add = autotune(
      "throws_again", blocks(),
      [&](const Config& config) {
        adds.in_place()(config);
        if (++runs == 2) throw std::runtime_error("not again");
        return runs;
      },
      short_runs({}));
  CHECK(add() == 1);
  CHECK(adds.result() == all(1.0F));
  CHECK(log_lines({"reason=not_repeatable", "throws_again", "did not come to its end"}).size() ==
        1);
  CHECK(add() == 3);
}

TEST_CASE("Each problem of a function is looked at by itself", "[repeatable]") {
  Function adds;
  auto add = autotune(
      "by_key", blocks(), [](bool accumulates) { return accumulates; },
      [&](const Config& config, bool accumulates) {
        return accumulates ? adds.in_place()(config) : adds.out_of_place()(config);
      },
      short_runs({}));
  add(false);
  add(true);
  CHECK(adds.result() == all(2.0F));
  CHECK(log_lines({"event=winner", "site=by_key", "key=0", "block=128"}).size() == 1);
  CHECK(log_lines({"reason=not_repeatable", "by_key{key=1}"}).size() == 1);
}

TEST_CASE("Memory that a function takes in its first run is compared as well", "[repeatable]") {
  Function adds;
  adds.y = 0;
  auto add = autotune(
      "allocates", blocks(),
      [&](const Config& config) {
        if (adds.y == 0) adds.y = Program::on().floats(n);
        return adds.in_place()(config);
      },
      short_runs({}));
  add();
  CHECK(adds.result() == all(1.0F));
}

TEST_CASE("A function that is not tuned says so at the call where that is wanted", "[repeatable]") {
  Function adds;
  std::ostringstream said;
  std::streambuf* const before = std::clog.rdbuf(said.rdbuf());
  auto add = autotune("talks", blocks(), adds.in_place(), short_runs({.verbose = true}));
  add();
  std::clog.rdbuf(before);
  CHECK(said.str().find("talks: was not tuned: ") != std::string::npos);
}

TEST_CASE("While other threads may write to memory nothing is compared, and nothing run again",
          "[repeatable]") {
  Function sets;
  std::atomic<bool> is_over{false};
  std::thread other([&] {
    Program::on();
    is_over.wait(false);
  });
  auto set = autotune("beside_threads", blocks(), sets.out_of_place(), short_runs({}));
  set();
  is_over = true;
  is_over.notify_all();
  other.join();
  CHECK(sets.blocks == Blocks{256});
  CHECK(log_lines({"reason=not_repeatable", "beside_threads", "other threads"}).size() == 1);
}
