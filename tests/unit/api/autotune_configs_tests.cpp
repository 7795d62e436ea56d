// Which configs a function tries: what is pruned, what fails, and what a call sets by hand.
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <contextune/contextune.hpp>

#include "catch.hpp"
#include "program.hpp"
#include "short_tuning.hpp"

using contextune::autotune;
using contextune::AutotuneOptions;
using contextune::Config;
using contextune::ConfigSpace;
using contextune::Error;
using contextune::LaunchShape;

namespace {

/// A function that notes its blocks and is fastest in blocks of 128.
struct Noted {
  CUdeviceptr y = Program::on().floats(8);
  std::vector<unsigned> blocks;

  [[nodiscard]] auto function() {
    return [this](const Config& config, int) {
      blocks.push_back(block_of(config));
      return Program::on().add(y, 8, 1.0F, 1, block_of(config));
    };
  }
  [[nodiscard]] bool ran(unsigned block) const {
    return std::find(blocks.begin(), blocks.end(), block) != blocks.end();
  }
};

int key(int n) {
  return n;
}
LaunchShape shape(const Config& config, int) {
  return {.block = {block_of(config)}};
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("What prune does not keep is not tried, for each problem by itself", "[autotune]") {
  Noted noted;
  auto add = autotune(
      "pruned", ConfigSpace().parameter("block", {256, 64, 128}), key,
      [](const Config& config, int n) { return block_of(config) != 256 || n > 1; },
      noted.function(), short_runs());
  CHECK(add(1) == CUDA_SUCCESS);
  CHECK(noted.blocks.front() == 64);
  CHECK(noted.blocks.back() == 128);
  CHECK_FALSE(noted.ran(256));
  CHECK(log_lines({"event=site", "pruned{key=1}", "configs=2", "pruned_by_author=1"}).size() == 1);
  CHECK(add(2) == CUDA_SUCCESS);
  CHECK(noted.ran(256));
  CHECK(log_lines({"event=site", "pruned{key=2}", "configs=3"}).size() == 1);
}

TEST_CASE("What device and kernel do not allow is pruned before the author is asked",
          "[autotune]") {
  Noted noted;
  std::vector<unsigned> asked;
  auto add = autotune(
                 "shaped", ConfigSpace().parameter("block", {2048, 512, 256, 64, 128}), key,
                 [&](const Config& config, int) {
                   asked.push_back(block_of(config));
                   return block_of(config) != 64;
                 },
                 noted.function(), short_runs())
                 .shape(shape)
                 .kernel(contextune::KernelLimits{.max_threads_per_block = 256});
  CHECK(add(1) == CUDA_SUCCESS);
  CHECK(asked == std::vector<unsigned>{256, 64, 128});
  CHECK(noted.blocks.front() == 256);
  CHECK(noted.blocks.back() == 128);
  CHECK(log_lines({"event=site", "shaped{key=1}", "configs=2", "pruned_by_device=1",
                   "pruned_by_kernel=1", "pruned_by_author=1"})
            .size() == 1);
}

TEST_CASE("A kernel's limits are those that the driver knows", "[autotune]") {
  const auto limits = contextune::kernel_limits(Program::on().function("add"));
  CHECK(limits.max_threads_per_block > 0);
  CHECK(limits.registers > 0);
  CHECK(limits.max_dynamic_shared_bytes + limits.static_shared_bytes ==
        contextune::current_device().max_shared_bytes);

  Noted noted;
  auto add = autotune("by_handle", ConfigSpace().parameter("block", {4096, 256, 128}),
                      noted.function(), {.repeatable = true})
                 .shape(shape)
                 .kernel([](const Config&, int) { return Program::on().function("add"); });
  CHECK(add(1) == CUDA_SUCCESS);
  CHECK_FALSE(noted.ran(4096));
}

TEST_CASE("A problem with one config left runs it at once, and the log says why", "[autotune]") {
  Noted noted;
  auto add = autotune(
      "one_left", ConfigSpace().parameter("block", {256, 64, 128}), key,
      [](const Config& config, int) { return block_of(config) == 64; }, noted.function());
  CHECK(add(1) == CUDA_SUCCESS);
  CHECK(noted.blocks == std::vector<unsigned>{64});
  CHECK(log_lines({"event=fallback", "reason=no_knobs", "one_left{key=1}", "2 by the author"})
            .size() == 1);
}

TEST_CASE("A problem without configs is an error that names each config's reason", "[autotune]") {
  Noted noted;
  auto add = autotune(
                 "none_left", ConfigSpace().parameter("block", {2048, 64}), key,
                 [](const Config&, int) { return false; }, noted.function())
                 .shape(shape);
  for (int again = 0; again < 2; ++again) {
    const std::string text = error_of([&] { static_cast<void>(add(7)); });
    CHECK(text.find("function 'none_left'") == 0);
    CHECK(text.find("'key=7'") != std::string::npos);
    CHECK(text.find("block=2048: the block's x is 2048") != std::string::npos);
    CHECK(text.find("block=64: prune rules it out") != std::string::npos);
  }
  CHECK(noted.blocks.empty());
}

TEST_CASE("A config that fails is given up, and the default runs in its place", "[autotune]") {
  const Program& program = Program::on();
  const CUdeviceptr y = program.floats(1);
  std::vector<unsigned> blocks;
  int runs = 0;
  const auto check = [&](auto&& function) {
    auto add = std::move(function);
    ++runs;
    add();
    CHECK(blocks.back() == 128);
    CHECK(Program::read(y, 1).front() == static_cast<float>(runs));
  };
  const auto space = ConfigSpace().parameter("block", {256, 4096, 128});
  const AutotuneOptions options{
      .n_warmup = 0, .n_repeat = 2, .restore = {{reinterpret_cast<void*>(y), sizeof(float)}}};
  check(autotune(
      "failing_by_code", space,
      [&](const Config& config) {
        blocks.push_back(block_of(config));
        return program.add(y, 1, 1.0F, 1, block_of(config));
      },
      options));
  check(autotune(
      "failing_by_throw", space,
      [&](const Config& config) {
        blocks.push_back(block_of(config));
        if (program.add(y, 1, 1.0F, 1, block_of(config)) != CUDA_SUCCESS)
          throw std::runtime_error("cannot launch");
      },
      options));
  CHECK(log_lines({"event=trial", "failing_by_code", "block=4096", "status=failed"}).size() > 0);
}

TEST_CASE("A default that cannot run leaves its place to the next config", "[autotune]") {
  Noted noted;
  auto add = autotune("no_default", ConfigSpace().parameter("block", {4096, 2048, 256, 128}), key,
                      noted.function(), short_runs());
  CHECK(add(1) == CUDA_SUCCESS);
  CHECK(noted.blocks.back() == 128);
  CHECK(log_lines({"event=site", "no_default{", "key=1 failed=2", "configs=2", "pruned_failed=2"})
            .size() == 1);
  const std::size_t before = noted.blocks.size();
  CHECK(add(1) == CUDA_SUCCESS);
  CHECK(noted.blocks.size() == before + 1);
  CHECK(noted.blocks.back() == 128);
}

TEST_CASE("If every config fails, the error names the reason of each", "[autotune]") {
  Program::on();
  int runs = 0;
  auto broken = autotune("broken", ConfigSpace().parameter("block", {1, 2}), key,
                         [&](const Config& config, int) {
                           ++runs;
                           if (block_of(config) == 1) throw std::out_of_range("too small");
                           return CUDA_ERROR_INVALID_VALUE;
                         });
  const std::string text = error_of([&] { static_cast<void>(broken(3)); });
  CHECK(text.find("function 'broken'") == 0);
  CHECK(text.find("'key=3") != std::string::npos);
  CHECK(text.find("block=1: too small") != std::string::npos);
  CHECK(text.find("block=2: returned error 1") != std::string::npos);
  CHECK(runs == 2);
}

TEST_CASE("What the function threw last is nested in the error", "[autotune]") {
  Program::on();
  auto broken = autotune("nested", ConfigSpace().parameter("block", {1, 2}),
                         [](const Config&) { throw std::out_of_range("mine"); });
  try {
    broken();
    FAIL("not reached");
  } catch (const Error& error) {
    CHECK_THROWS_AS(std::rethrow_if_nested(error), std::out_of_range);
  }
}

TEST_CASE("What a default throws that ran before is the caller's", "[autotune]") {
  Noted noted;
  int runs = 0;
  const auto add = noted.function();
  auto sometimes = autotune("sometimes", ConfigSpace().parameter("block", {256, 64}), key,
                            [&](const Config& config, int n) {
                              if (++runs == 2) throw std::out_of_range("mine");
                              return add(config, n);
                            },
                            {.repeatable = true});
  CHECK_THROWS_AS(sometimes(1), std::out_of_range);
}

TEST_CASE("A winner that can no longer be launched is not run again", "[autotune]") {
  Noted noted;
  bool works = true;
  auto add = autotune(
      "worn", ConfigSpace().parameter("block", {256, 128}), key,
      [&](const Config& config, int) {
        noted.blocks.push_back(block_of(config));
        return Program::on().add(noted.y, 8, 1.0F, 1,
                                 block_of(config) == 128 && !works ? 4096 : block_of(config));
      },
      short_runs());
  add(1);
  REQUIRE(noted.blocks.back() == 128);
  works = false;
  CHECK(add(1) == CUDA_SUCCESS);
  CHECK(noted.blocks.back() == 256);
  const std::size_t before = noted.blocks.size();
  CHECK(add(1) == CUDA_SUCCESS);
  CHECK(noted.blocks.size() == before + 1);
  CHECK(log_lines({"event=fallback", "reason=winner_failed", "worn{key=1}"}).size() >= 1);
}

TEST_CASE("A call may leave a function untuned", "[autotune]") {
  Noted noted;
  auto add = autotune("untuned", ConfigSpace().parameter("block", {256, 128}), key,
                      noted.function(), short_runs());
  CHECK(add.with({.tune = false})(1) == CUDA_SUCCESS);
  CHECK(noted.blocks == std::vector<unsigned>{256});
  CHECK(log_lines({"untuned{"}).empty());
  add(1);
  CHECK(noted.blocks.back() == 128);
}

TEST_CASE("What a function is tuned to is said where that is wanted", "[autotune]") {
  Noted noted;
  std::ostringstream said;
  std::streambuf* const before = std::clog.rdbuf(said.rdbuf());
  auto add = autotune("talking", ConfigSpace().parameter("block", {256, 128}), key,
                      noted.function(), short_runs());
  add(1);
  CHECK(said.str() == "");
  add.with({.verbose = true})(1);
  add.with({.verbose = true})(2);
  std::clog.rdbuf(before);
  CHECK(said.str() ==
        "contextune: talking{key=1}: runs block=128\n"
        "contextune: talking{key=2}: was tuned, and runs block=128\n");
}

TEST_CASE("A call may set parameters by hand where that is allowed", "[autotune]") {
  Noted noted;
  const auto space = ConfigSpace().parameter("block", {256, 128}).parameter("stages", {2, 3});
  auto fixed = autotune("not_overridden", space, key, noted.function(), short_runs());
  CHECK_THROWS_WITH(fixed.with({.set = {{"block", 64}}})(1),
                    Catch::Contains("'not_overridden'") && Catch::Contains("allow_override"));
  CHECK(noted.blocks.empty());

  auto add = autotune("overridden", space, key, noted.function(), {.allow_override = true});
  CHECK(add.with({.set = {{"block", 64}}})(1) == CUDA_SUCCESS);
  CHECK(noted.blocks == std::vector<unsigned>{64});
  CHECK_THROWS_WITH(add.with({.set = {{"blocks", 64}}})(1), Catch::Contains("no such parameter"));
}

namespace tiles {
struct Tile {
  unsigned block;
};
Config describe(const Tile& tile) {
  return {{"block", std::int64_t{tile.block}}};
}
}  // namespace tiles

TEST_CASE("A struct is set by hand to one of its space only", "[autotune]") {
  const Program& program = Program::on();
  const CUdeviceptr y = program.floats(8);
  std::vector<unsigned> blocks;
  auto add = autotune("overridden_struct", std::vector<tiles::Tile>{{256}, {128}},
                      [&](const tiles::Tile& tile) {
                        blocks.push_back(tile.block);
                        return program.add(y, 8, 1.0F, 1, tile.block);
                      },
                      {.allow_override = true});
  CHECK(add.with({.set = {{"block", 128}}})() == CUDA_SUCCESS);
  CHECK(blocks == std::vector<unsigned>{128});
  CHECK_THROWS_WITH(add.with({.set = {{"block", 64}}})(), Catch::Contains("no config 'block=64'"));
}
