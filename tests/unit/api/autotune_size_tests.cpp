// One winner for a range of sizes.
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include <contextune/contextune.hpp>

#include "catch.hpp"
#include "program.hpp"

using contextune::autotune;
using contextune::AutotuneOptions;
using contextune::Buckets;
using contextune::Config;
using contextune::ConfigSpace;
using contextune::UnseenSize;

namespace {

/// Fastest in blocks of 128 up to 1000 elements, and in the default of 256 beyond.
struct Sized {
  CUdeviceptr y = Program::on().floats(8);
  std::map<int, std::vector<unsigned>> of;

  [[nodiscard]] auto make(const char* name, AutotuneOptions options) {
    options.n_warmup = 0;
    options.n_repeat = 2;
    options.repeatable = true;
    return autotune(
               name, ConfigSpace().parameter("block", {256, 128}),
               [this](const Config& config, int n) {
                 const auto block = static_cast<unsigned>(config.get_int("block"));
                 of[n].push_back(block);
                 return Program::on().add(y, 8, 1.0F, 1, n > 1000 ? 384 - block : block);
               },
               std::move(options))
        .size([](int n) { return n; })
        .inputs([](std::uint64_t size) { return std::tuple(static_cast<int>(size)); });
  }
};

std::size_t winners(const std::string& name) {
  return log_lines({"event=winner", "site=" + name}).size();
}

}  // namespace

TEST_CASE("Sizes of one bucket share a winner", "[autotune]") {
  Sized sized;
  auto add = sized.make("shared", {});
  add(600);
  add(700);
  CHECK(sized.of[700] == std::vector<unsigned>{128});
  add(2000);
  CHECK(sized.of[2000].size() > 1);
  CHECK(sized.of[2000].back() == 256);
  CHECK(winners("shared") == 2);
  CHECK(log_lines({"event=winner", "key=\"size=513-1024\"", "block=128"}).size() == 1);

  auto by_edges = sized.make("by_edges", {.buckets = Buckets::edges({100, 1000})});
  by_edges(600);
  by_edges(101);
  CHECK(sized.of[101] == std::vector<unsigned>{128});
  CHECK(winners("by_edges") == 1);

  auto exact = sized.make("exact_sizes", {.buckets = Buckets::exact()});
  exact(600);
  exact(601);
  CHECK(winners("exact_sizes") == 2);
}

TEST_CASE("Hints are measured before the first call, and an unseen size takes the nearest",
          "[autotune]") {
  Sized sized;
  auto add = sized.make("hinted", {.hints = {512, 4096}, .unseen = UnseenSize::Nearest});
  add(2048);
  CHECK(winners("hinted") == 2);
  CHECK(sized.of[512].back() == 128);
  CHECK(sized.of[4096].back() == 256);
  CHECK(sized.of[2048] == std::vector<unsigned>{256});
  add(200);
  CHECK(sized.of[200] == std::vector<unsigned>{128});
  add(200);
  CHECK(sized.of[200] == std::vector<unsigned>{128, 128});
  CHECK(winners("hinted") == 2);

  // Nothing near: it is tuned.
  add(20);
  CHECK(winners("hinted") == 3);

  SECTION("until the size is measured itself") {
    add.tune(2000);
    CHECK(winners("hinted") == 4);
    CHECK(log_lines({"event=winner", "site=hinted", "size=1025-2048", "block=256"}).size() == 1);
    const std::size_t before = sized.of[2000].size();
    add.tune(2000);
    CHECK(sized.of[2000].size() == before);
  }
}

TEST_CASE("A call that is not to be tuned measures no hints either", "[autotune]") {
  Sized sized;
  auto add = sized.make("hints_later", {.hints = {512}});
  add.with({.tune = false})(2000);
  CHECK(sized.of.size() == 1);
  add(2000);
  CHECK(sized.of[512].back() == 128);
}

TEST_CASE("What hints, near sizes and regions make a function run is said where that is wanted",
          "[autotune]") {
  Sized sized;
  std::ostringstream said;
  std::streambuf* const before = std::clog.rdbuf(said.rdbuf());
  auto add =
      sized.make("talking_sizes", {.hints = {512}, .unseen = UnseenSize::Nearest, .verbose = true});
  add.tune(64);
  add(200);
  add.with({.verbose = true})(100);
  CONTEXTUAL_AUTOTUNE("talking_sizes") {
    add.with({.verbose = true})(4000);
  }
  std::clog.rdbuf(before);
  CHECK(said.str() ==
        "contextune: talking_sizes{size=33-64}: was tuned, and runs block=128\n"
        "contextune: talking_sizes{size=257-512}: was tuned, and runs block=128\n"
        "contextune: talking_sizes{size=65-128}: runs block=128\n"
        "contextune: talking_sizes{size=2049-4096}: runs block=256\n");
}

TEST_CASE("A size that was near to another runs what a region finds for it", "[autotune]") {
  Sized sized;
  auto add = sized.make("near_until_region", {.hints = {512}, .unseen = UnseenSize::Nearest});
  add(2000);
  CHECK(sized.of[2000] == std::vector<unsigned>{128});
  CONTEXTUAL_AUTOTUNE("near_until_region", {.repeatable = true, .refine = false}) {
    add(2000);
  }
  sized.of[2000].clear();
  add(2000);
  CHECK(sized.of[2000] == std::vector<unsigned>{256});
}

TEST_CASE("An unseen size runs the default where that is said", "[autotune]") {
  Sized sized;
  auto add = sized.make("hints_only", {.hints = {512}, .unseen = UnseenSize::Default});
  add(700);
  CHECK(sized.of[700] == std::vector<unsigned>{256});
  add(512);
  CHECK(sized.of[512].back() == 128);
  CHECK(winners("hints_only") == 1);
}

TEST_CASE("How near a size has to be can be said", "[autotune]") {
  Sized sized;
  auto add =
      sized.make("not_near", {.hints = {512}, .unseen = UnseenSize::Nearest, .nearest_within = 1});
  add(1000);
  CHECK(winners("not_near") == 2);
}

TEST_CASE("A function without inputs cannot have hints", "[autotune]") {
  Program::on();
  auto add = autotune("no_inputs", ConfigSpace().parameter("block", {256, 128}),
                      [](const Config&, int) {}, {.hints = {512}})
                 .size([](int n) { return n; });
  CHECK_THROWS_WITH(add(1), Catch::Contains("no_inputs") && Catch::Contains("inputs()"));
}

TEST_CASE("The same size under another key is another problem", "[autotune]") {
  const Program& program = Program::on();
  const CUdeviceptr y = program.floats(8);
  auto add =
      autotune(
          "keyed_sizes", ConfigSpace().parameter("block", {256, 128}),
          [](int kind, int) { return kind; },
          [&](const Config& config, int, int) {
            return program.add(y, 8, 1.0F, 1, static_cast<unsigned>(config.get_int("block")));
          },
          {.n_warmup = 0, .n_repeat = 2, .repeatable = true, .unseen = UnseenSize::Nearest})
          .size([](int, int n) { return n; });
  add(1, 600);
  add(2, 600);
  CHECK(winners("keyed_sizes") == 2);
  add(2, 1200);  // near to its own kind
  CHECK(winners("keyed_sizes") == 2);
}

TEST_CASE("A winner of a near size that cannot run here is given up", "[autotune]") {
  const Program& program = Program::on();
  const CUdeviceptr y = program.floats(8);
  std::vector<unsigned> blocks;
  auto add =
      autotune("not_here", ConfigSpace().parameter("block", {256, 128}),
               [&](const Config& config, int n) {
                 const auto block = static_cast<unsigned>(config.get_int("block"));
                 blocks.push_back(block);
                 return program.add(y, 8, 1.0F, 1, block == 128 && n > 1000 ? 4096 : block);
               },
               {.n_warmup = 0, .n_repeat = 2, .repeatable = true, .unseen = UnseenSize::Nearest})
          .size([](int n) { return n; });
  add(1000);
  blocks.clear();
  CHECK(add(2000) == CUDA_SUCCESS);
  CHECK(blocks == std::vector<unsigned>{128, 256});
  add(2000);  // is tuned
  blocks.clear();
  add(2000);
  CHECK(blocks == std::vector<unsigned>{256});
}

TEST_CASE("A size that had no choice is not what a near one takes", "[autotune]") {
  const Program& program = Program::on();
  const CUdeviceptr y = program.floats(8);
  std::vector<unsigned> blocks;
  auto add =
      autotune(
          "no_choice_near", ConfigSpace().parameter("block", {256, 128}), nullptr,
          [](const Config& config, int n) { return n > 500 || config.get_int("block") > 128; },
          [&](const Config& config, int) {
            const auto block = static_cast<unsigned>(config.get_int("block"));
            blocks.push_back(block);
            return program.add(y, 8, 1.0F, 1, block);
          },
          {.n_warmup = 0, .n_repeat = 2, .repeatable = true, .unseen = UnseenSize::Nearest})
          .size([](int n) { return n; });
  add(500);
  CHECK(blocks == std::vector<unsigned>{256});
  add(1000);  // nothing near was compared with anything
  CHECK(winners("no_choice_near") == 1);
  CHECK(blocks.back() == 128);
}
