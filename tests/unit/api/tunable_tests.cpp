#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <contextune/contextune.hpp>

#include "catch.hpp"
#include "program.hpp"
#include "short_tuning.hpp"

using contextune::Config;
using contextune::ConfigSpace;
using contextune::Key;
using contextune::Tunable;

TEST_CASE("A tunable keeps a winner for each key", "[tunable]") {
  const Program& program = Program::on();
  const CUdeviceptr y = program.floats(4096);
  std::map<int, std::vector<unsigned>> blocks;
  // For small n the default is the fastest there is; for the others 128.
  Tunable add(
      "keyed", ConfigSpace().parameter("block", {256, 64, 128}),
      [](int n) {
        return Key{{"n", n}};
      },
      [&](const Config& config, int n) {
        const unsigned block = block_of(config);
        blocks[n].push_back(block);
        const unsigned launched = n < 100 ? (block == 256 ? 128 : 256) : block;
        return program.add(y, n, 1.0F, 1, launched);
      });
  CONTEXTUAL_AUTOTUNE("keyed", short_table()) {
    add(50);
    add(4096);
    add(4096);
  }
  CHECK(blocks[50].size() == 7);
  CHECK(blocks[50].back() == 256);
  CHECK(blocks[4096].size() == 14);
  CHECK(blocks[4096].back() == 128);
  CHECK(log_lines({"event=winner", "site=keyed", "n=50", "config=0"}).size() == 1);
  CHECK(log_lines({"event=winner", "site=keyed", "n=4096", "config=2"}).size() == 1);

  SECTION("which runs outside of regions too, and the default where none is known") {
    add(50);
    add(4096);
    add(2000);
    CHECK(blocks[50].back() == 256);
    CHECK(blocks[4096].back() == 128);
    CHECK(blocks[2000] == std::vector<unsigned>{256});
  }
}

TEST_CASE("A config that cannot be launched runs again with the default", "[tunable]") {
  const Program& program = Program::on();
  const CUdeviceptr y = program.floats(1);
  std::vector<unsigned> blocks;
  const auto space = ConfigSpace().parameter("block", {256, 4096, 128});
  int runs = 0;

  SECTION("when the callable returns an error") {
    Tunable add("failing_by_code", space, [&](const Config& config) {
      blocks.push_back(block_of(config));
      return program.add(y, 1, 1.0F, 1, block_of(config));
    });
    CONTEXTUAL_AUTOTUNE("failing_by_code", short_table()) {
      ++runs;
      CHECK(add() == CUDA_SUCCESS);
    }
    CHECK(log_lines({"reason=launch_failed", "region=failing_by_code", "Config 1 (block=4096)",
                     "returned error " + std::to_string(CUDA_ERROR_INVALID_VALUE)})
              .size() == 1);
  }
  SECTION("when the callable throws") {
    Tunable add("failing_by_throw", space, [&](const Config& config) {
      blocks.push_back(block_of(config));
      if (program.add(y, 1, 1.0F, 1, block_of(config)) != CUDA_SUCCESS) {
        throw std::runtime_error("no room for a block of " + std::to_string(block_of(config)));
      }
    });
    CONTEXTUAL_AUTOTUNE("failing_by_throw", short_table()) {
      ++runs;
      add();
    }
    CHECK(log_lines({"reason=launch_failed", "region=failing_by_throw", "Config 1 (block=4096)",
                     "no room for a block of 4096"})
              .size() == 1);
  }
  CHECK(Program::read(y, 1).front() == static_cast<float>(runs));
  CHECK(blocks.back() == 128);
}

TEST_CASE("What the default throws is the caller's", "[tunable]") {
  Program::on();
  Tunable broken("broken", ConfigSpace().parameter("block", {1, 2}),
                 [](const Config&) { throw std::out_of_range("mine"); });
  CHECK_THROWS_AS(broken(), std::out_of_range);
  const auto enter = [&] {
    CONTEXTUAL_AUTOTUNE("broken", short_table()) {
      broken();
    }
  };
  CHECK_THROWS_AS(enter(), std::out_of_range);
}

TEST_CASE("A tunable gives what its callable gives, by value or by reference", "[tunable]") {
  Program::on();
  const auto space = ConfigSpace().parameter("x", {7, 8});
  Tunable value("by_value", space, [](const Config& config, int more) {
    return static_cast<int>(config.get_int("x")) + more;
  });
  CHECK(value(3) == 10);
  int target = 1;
  Tunable reference("by_reference", space,
                    [](const Config&, int& wanted) -> int& { return wanted; });
  CHECK(&reference(target) == &target);
}

TEST_CASE("Each call uses its own arguments", "[tunable]") {
  const Program& program = Program::on();
  const CUdeviceptr first = program.floats(8);
  const CUdeviceptr second = program.floats(8);
  Tunable add("arguments", ConfigSpace().parameter("block", {256, 64, 128}),
              [&](const Config& config, CUdeviceptr y, float value) {
                return program.add(y, 8, value, 1, block_of(config));
              });
  int runs = 0;
  CONTEXTUAL_AUTOTUNE("arguments", short_table()) {
    ++runs;
    add(first, 1.0F);
    add(second, 2.0F);
  }
  CHECK(Program::read(first, 8) == std::vector<float>(8, static_cast<float>(runs)));
  CHECK(Program::read(second, 8) == std::vector<float>(8, 2.0F * static_cast<float>(runs)));
}

TEST_CASE("A tunable that is made anew for each call is the same tunable", "[tunable]") {
  const Program& program = Program::on();
  const CUdeviceptr y = program.floats(8);
  std::vector<unsigned> blocks;
  CONTEXTUAL_AUTOTUNE("anew", short_table()) {
    Tunable add("anew", ConfigSpace().parameter("block", {256, 64, 128}),
                [&](const Config& config) {
                  blocks.push_back(block_of(config));
                  return program.add(y, 8, 1.0F, 1, block_of(config));
                });
    add();
  }
  CHECK(blocks == std::vector<unsigned>{256, 256, 64, 64, 128, 128, 128});
}

TEST_CASE("Passes of a tunable may differ from those of its region", "[tunable]") {
  const Program& program = Program::on();
  const CUdeviceptr y = program.floats(8);
  int calls = 0;
  Tunable add("own_passes", ConfigSpace().parameter("block", {256, 128}),
              [&](const Config& config) {
                ++calls;
                return program.add(y, 8, 1.0F, 1, block_of(config));
              });
  add.set_passes(1, 4);
  CONTEXTUAL_AUTOTUNE("own_passes", short_table()) {
    add();
  }
  CHECK(calls == 2 * 5 + 1);
  CHECK_THROWS_AS(add.set_passes(-1, 1), contextune::Error);
  CHECK_THROWS_AS(add.set_passes(0, 0), contextune::Error);
}

TEST_CASE("A tunable without configs is refused", "[tunable]") {
  const auto launch = [](const Config&) {};
  CHECK_THROWS_AS(Tunable("empty", ConfigSpace(), launch), contextune::Error);
  CHECK_THROWS_WITH(Tunable("empty", ConfigSpace(), launch), Catch::Contains("tunable 'empty'"));
  CHECK_THROWS_AS(
      Tunable("ruled_out",
              ConfigSpace().parameter("x", {1}).constraint([](const Config&) { return false; }),
              launch),
      contextune::Error);
}

TEST_CASE("Configs and keys with texts, fractions and truth values reach the log as they are",
          "[tunable]") {
  const Program& program = Program::on();
  const CUdeviceptr y = program.floats(8);
  Tunable add(
      "texts",
      ConfigSpace({Config{{"kind", "two words"}, {"share", 0.5}, {"fused", true}},
                   Config{{"kind", "a=b"}, {"share", 2.0}, {"fused", false}}}),
      [](const std::string& layout) {
        return Key{{"layout", layout}, {"n", 8}};
      },
      [&](const Config&, const std::string&) { return program.add(y, 8, 1.0F, 1, 64); });
  CONTEXTUAL_AUTOTUNE("texts", short_table()) {
    add(std::string("row major"));
  }
  CHECK(
      log_lines({"event=winner", "site=texts", "two words", "share=0.5", "fused=true", "row major"})
          .size() == 1);
}
