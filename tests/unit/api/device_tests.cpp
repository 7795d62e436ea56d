#include <thread>
#include <vector>

#include <contextune/contextune.hpp>

#include "catch.hpp"
#include "program.hpp"
#include "short_tuning.hpp"

using contextune::Config;
using contextune::ConfigSpace;
using contextune::Tunable;

TEST_CASE("Each device has winners of its own", "[device]") {
  std::vector<std::vector<unsigned>> blocks(2);
  std::vector<CUdeviceptr> y{Program::on(0).floats(8), Program::on(1).floats(8)};
  // What is best on device 0 is worst on device 1.
  Tunable add("two_devices", ConfigSpace().parameter("block", {64, 128, 256}),
              [&](const Config& config, int device) {
                const auto block = static_cast<unsigned>(config.get_int("block"));
                blocks[static_cast<std::size_t>(device)].push_back(block);
                const unsigned launched = device == 0 ? block : block == 256 ? 128 : 256;
                return Program::on(device).add(y[static_cast<std::size_t>(device)], 8, 1.0F, 1,
                                               launched);
              });

  SECTION("in a region that one thread drives both from") {
    Program::on(0);
    CONTEXTUAL_AUTOTUNE("one_thread", short_table()) {
      add(0);
      Program::on(1);
      add(1);
      Program::on(0);
    }
    CHECK(blocks[0].size() == 7);
    CHECK(blocks[1].size() == 7);
  }
  SECTION("in a region that each device enters on a thread of its own") {
    std::vector<std::thread> threads;
    for (int device = 0; device < 2; ++device) {
      threads.emplace_back([&, device] {
        Program::on(device);
        CONTEXTUAL_AUTOTUNE("two_threads", short_table()) {
          add(device);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(log_lines({"event=winner", "region=two_threads "}).size() == 1);
    CHECK(log_lines({"event=winner", "region=two_threads@device"}).size() == 1);
  }
  CHECK(blocks[0].back() == 128);
  CHECK(blocks[1].back() == 256);
}

TEST_CASE("A function has winners of its own on each device", "[device]") {
  std::vector<std::vector<unsigned>> blocks(2);
  std::vector<CUdeviceptr> y{Program::on(0).floats(8), Program::on(1).floats(8)};
  // What is best on device 0 is worst on device 1.
  auto add = contextune::autotune(
      "function_on_two", ConfigSpace().parameter("block", {64, 128, 256}), [](int) { return 1; },
      [&](const Config& config, int device) {
        const auto block = static_cast<unsigned>(config.get_int("block"));
        blocks[static_cast<std::size_t>(device)].push_back(block);
        const unsigned launched = device == 0 ? block : block == 256 ? 128 : 256;
        return Program::on(device).add(y[static_cast<std::size_t>(device)], 8, 1.0F, 1, launched);
      },
      {.repeatable = true});
  for (int again = 0; again < 2; ++again) {
    for (int device = 0; device < 2; ++device) {
      Program::on(device);
      add(device);
    }
  }
  CHECK(blocks[0].back() == 128);
  CHECK(blocks[1].back() == 256);
  CHECK(log_lines({"event=winner", "site=function_on_two", "@device1"}).size() == 1);
}

TEST_CASE("A choice is compared and measured on each device that it is called on", "[device]") {
  std::vector<std::vector<std::string>> ran(2);
  std::vector<CUdeviceptr> y{Program::on(0).floats(8), Program::on(1).floats(8)};
  contextune::Choice<CUresult(int)> add("choice_on_two", {.n_repeat = 2});
  add.buffers([&](int device) {
    return contextune::ChoiceMemory{
        {{reinterpret_cast<void*>(y[static_cast<std::size_t>(device)]), 8 * sizeof(float)}}};
  });
  const auto in_blocks = [&](const char* name, unsigned first, unsigned second, float value) {
    add.add(name, [=, &ran, &y](const Config&, int device) {
      const auto i = static_cast<std::size_t>(device);
      ran[i].push_back(name);
      return Program::on(device).add(y[i], 8, device == 0 ? 1.0F : value, 1,
                                     device == 0 ? first : second);
    });
  };
  in_blocks("default", 256, 256, 1.0F);
  in_blocks("best_on_first", 128, 512, 1.0F);
  in_blocks("good_on_both", 64, 64, 1.0F);
  in_blocks("wrong_on_second", 192, 128, 2.0F);
  for (int again = 0; again < 2; ++again) {
    for (int device = 0; device < 2; ++device) {
      Program::on(device);
      ran[static_cast<std::size_t>(device)].clear();
      CHECK(add(device) == CUDA_SUCCESS);
    }
  }
  CHECK(ran[0] == std::vector<std::string>{"best_on_first"});
  CHECK(ran[1] == std::vector<std::string>{"good_on_both"});
  CHECK(Program::read(y[0], 8) == std::vector<float>(8, 2.0F));
  Program::on(1);
  CHECK(Program::read(y[1], 8) == std::vector<float>(8, 2.0F));
  const auto timings = add.timings({});
  REQUIRE(timings.size() == 4);
  CHECK(timings[2].is_winner);
  CHECK(timings[3].state == contextune_timing_wrong);
}

TEST_CASE("A function that says nothing is compared on all devices of the program", "[device]") {
  const CUdeviceptr y = Program::on(1).floats(8);
  const CUdeviceptr x = Program::on(0).floats(8);
  std::vector<unsigned> blocks;
  bool accumulates = false;
  const auto body = [&](const Config& config) {
    blocks.push_back(static_cast<unsigned>(config.get_int("block")));
    const CUresult result = Program::on(0).launch("set", x, 8, 1.0F, 1, blocks.back());
    if (!accumulates) return result;
    const CUresult other = Program::on(1).add(y, 8, 1.0F, 1, 128);
    Program::on(0);
    return other;
  };
  const auto space = ConfigSpace().parameter("block", {256, 64, 128});
  SECTION("and tuned where none of them has changed") {
    auto set = contextune::autotune("set_on_one", space, body, {.n_warmup = 0, .n_repeat = 2});
    CHECK(set() == CUDA_SUCCESS);
    CHECK(blocks.back() == 128);
    CHECK(log_lines({"reason=not_repeatable", "set_on_one"}).empty());
  }
  SECTION("and not tuned where another one has changed, which is undone") {
    accumulates = true;
    auto set = contextune::autotune("adds_on_other", space, body, {.n_warmup = 0, .n_repeat = 2});
    CHECK(set() == CUDA_SUCCESS);
    CHECK(blocks == std::vector<unsigned>{256, 256});
    CHECK(log_lines({"reason=not_repeatable", "adds_on_other", "left other bytes"}).size() == 1);
    Program::on(1);
    CHECK(Program::read(y, 8) == std::vector<float>(8, 1.0F));
    Program::on(0);
  }
  CHECK(Program::read(x, 8) == std::vector<float>(8, 1.0F));
}
