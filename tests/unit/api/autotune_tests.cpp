#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <contextune/contextune.hpp>

#include "catch.hpp"
#include "program.hpp"
#include "short_tuning.hpp"

using contextune::autotune;
using contextune::Config;
using contextune::ConfigSpace;
using contextune::Error;
using contextune::Key;

namespace {

/// What a function was run with, by its size.
struct Runs {
  CUdeviceptr y = Program::on().floats(4096);
  std::map<int, std::vector<unsigned>> of;

  /// Fastest in blocks of 128; for small n no block is faster than another.
  CUresult operator()(const Config& config, int n) {
    const unsigned block = block_of(config);
    of[n].push_back(block);
    return Program::on().add(y, n, 1.0F, 1, n < 100 ? 256 : block);
  }
  [[nodiscard]] auto function() {
    return [this](const Config& config, int n) { return (*this)(config, n); };
  }
};

/// Two runs of each config count, and no run is for warming up.
int size_of(int n) {
  return n;
}

}  // namespace

TEST_CASE("Each new key is tuned at its first call, and runs its winner at once from then on",
          "[autotune]") {
  Runs runs;
  auto add = autotune("first_call", blocks(), size_of, runs.function(), short_runs());
  CHECK(add(4096) == CUDA_SUCCESS);
  const std::size_t first = runs.of[4096].size();
  CHECK(first > 6);
  CHECK(runs.of[4096].back() == 128);
  CHECK(log_lines({"event=winner", "region=\"first_call{key=4096}\"", "block=128"}).size() == 1);

  // The second key as fully as the first.
  CHECK(add(2048) == CUDA_SUCCESS);
  CHECK(runs.of[2048].size() == first);
  CHECK(runs.of[2048].back() == 128);
  CHECK(log_lines({"event=winner", "region=\"first_call{key=2048}\"", "block=128"}).size() == 1);
  CHECK(log_lines({"event=confirm", "first_call{", "verdict=kept"}).size() == 2);

  // What is not faster than the default does not take its place.
  CHECK(add(50) == CUDA_SUCCESS);
  CHECK(runs.of[50].size() == 6 + 1);
  CHECK(runs.of[50].back() == 256);

  CHECK(add(4096) == CUDA_SUCCESS);
  CHECK(runs.of[4096].size() == first + 1);
  CHECK(runs.of[4096].back() == 128);
}

TEST_CASE("Five runs to warm up and ten that count are what a function is timed by", "[autotune]") {
  Runs runs;
  auto add = autotune("by_default", blocks(), size_of, runs.function(), {.repeatable = true});
  add(50);  // nothing is better than the default, so there is nothing to confirm
  CHECK(runs.of[50].size() == 3 * 15 + 1);
  CHECK_THROWS_AS(autotune("wrong", blocks(), runs.function(), {.n_repeat = 0}), Error);
  CHECK_THROWS_AS(autotune("wrong", blocks(), runs.function(), {.n_warmup = -1}), Error);
}

TEST_CASE("Inside an open region a function takes part in its passes", "[autotune]") {
  Runs runs;
  auto add = autotune("taking_part", blocks(), size_of, runs.function(), short_runs());
  CONTEXTUAL_AUTOTUNE(
      "around",
      {.repeatable = true, .n_warmup = 0, .n_repeat = 2, .refine = false, .confirm = false}) {
    add(4096);
  }
  CHECK(runs.of[4096] == std::vector<unsigned>{256, 256, 64, 64, 128, 128, 128});
  CHECK(log_lines({"event=winner", "region=around", "site=taking_part"}).size() == 1);

  SECTION("and what it has won there counts outside") {
    add(4096);
    CHECK(runs.of[4096].size() == 8);
    CHECK(runs.of[4096].back() == 128);
  }
}

TEST_CASE("A region that another thread is in is nothing to a function", "[autotune]") {
  Runs runs;
  auto add = autotune("elsewhere", blocks(), size_of, runs.function(), short_runs());
  CONTEXTUAL_AUTOTUNE("of_another_thread") {
    std::thread([&] {
      Program::on();
      add(4096);
    }).join();
  }
  CHECK(log_lines({"event=winner", "elsewhere{key=4096}", "block=128"}).size() == 1);
}

TEST_CASE("A key may be numbers, enums, texts, several of them, or a Key", "[autotune]") {
  Runs runs;
  enum class Layout { Row = 3 };
  const auto tuned = [&](const char* name, auto key) {
    auto add = autotune(name, blocks(), key, runs.function(), short_runs());
    add(4096);
    add(2048);
    add(2048);
    return log_lines({"event=winner", std::string("region=") + name}).size() +
           log_lines({"event=winner", std::string("region=\"") + name}).size();
  };
  CHECK(tuned("of_enum", [](int) { return Layout::Row; }) == 1);
  CHECK(tuned("of_pair", [](int n) { return std::pair(n, Layout::Row); }) == 2);
  CHECK(tuned("of_array", [](int n) { return std::array<long, 2>{1, n}; }) == 2);
  CHECK(tuned("of_text", [](int n) { return std::to_string(n); }) == 2);
  CHECK(tuned("of_mixture", [](int n) { return std::tuple(n, "row major", true); }) == 2);
  CHECK(tuned("of_key", [](int n) { return Key{{"half", n / 2}}; }) == 2);
  CHECK(tuned("of_nested", [](std::size_t n) {
          return std::tuple(std::pair(n, Layout::Row), std::optional<int>());
        }) == 2);
  CHECK(tuned("of_size", [](std::size_t n) { return n; }) == 2);
  CHECK(tuned("of_optional", [](int n) { return std::optional<int>(n); }) == 2);
  CHECK(tuned("of_vector", [](int n) { return std::vector<int>{n, 8}; }) == 2);
  CHECK(tuned("of_lists", [](int n) {
          return std::pair(std::string("f16"), std::vector{std::pair(n, n), std::pair(8, 8)});
        }) == 2);
  CHECK(log_lines({"event=winner", "key1=2048", "key2=3"}).size() == 1);
  CHECK(log_lines({"event=winner", "key=[2048:8]"}).size() == 1);
}

namespace tiles {
struct Tile {
  unsigned block;
  const char* name;
};
Config describe(const Tile& tile) {
  return {{"block", std::int64_t{tile.block}}, {"name", tile.name}};
}
}  // namespace tiles

TEST_CASE("A function is given the struct that its space lists", "[autotune]") {
  const Program& program = Program::on();
  const CUdeviceptr y = program.floats(8);
  std::vector<std::string> names;
  auto add = autotune(
      "of_structs", std::vector<tiles::Tile>{{256, "wide"}, {64, "small"}, {128, "good"}},
      [&](const tiles::Tile& tile) {
        names.emplace_back(tile.name);
        return program.add(y, 8, 1.0F, 1, tile.block);
      },
      short_runs());
  CHECK(add() == CUDA_SUCCESS);
  CHECK(names.back() == "good");
  CHECK(log_lines({"event=winner", "region=of_structs", "name=good"}).size() == 1);
}

TEST_CASE("A space may depend on the device", "[autotune]") {
  Program::on();
  int asked = 0;
  contextune::Device seen;
  Runs runs;
  auto add = autotune(
      "of_device",
      [&](const contextune::Device& device) {
        ++asked;
        seen = device;
        return ConfigSpace().parameter("block", {256, 128});
      },
      size_of, runs.function(), short_runs());
  CHECK(asked == 0);
  add(4096);
  add(2048);
  CHECK(asked == 1);
  CHECK(seen.num_sms > 0);
  CHECK(seen.name == contextune::current_device().name);
  CHECK(runs.of[4096].back() == 128);

  auto none = autotune(
      "of_no_device", [](const contextune::Device&) { return ConfigSpace(); }, runs.function());
  CHECK_THROWS_WITH(none(1), Catch::Contains("function 'of_no_device'") &&
                                 Catch::Contains("empty on " + seen.name));
}

TEST_CASE("A space without configs, or with one twice, is refused at once", "[autotune]") {
  Runs runs;
  CHECK_THROWS_WITH(autotune("empty", ConfigSpace(), runs.function()),
                    Catch::Contains("function 'empty'") && Catch::Contains("empty"));
  CHECK_THROWS_AS(autotune("empty", std::vector<Config>(), runs.function()), Error);
  CHECK_THROWS_WITH(
      autotune("twice", std::vector<Config>{{{"block", 1}}, {{"block", 1}}}, runs.function()),
      Catch::Contains("twice"));
  const auto none =
      ConfigSpace().parameter("x", {1}).constraint([](const Config&) { return false; });
  CHECK_THROWS_WITH(autotune("ruled_out", none, runs.function()),
                    Catch::Contains("function 'ruled_out'"));
}

TEST_CASE("The value of a call is that of the run with the winner", "[autotune]") {
  const Program& program = Program::on();
  const CUdeviceptr y = program.floats(8);
  auto owned = autotune(
      "move_only", blocks(),
      [&](const Config& config) {
        static_cast<void>(program.add(y, 8, 1.0F, 1, block_of(config)));
        return std::make_unique<unsigned>(block_of(config));
      },
      short_runs());
  CHECK(*owned() == 128);
  CHECK(*owned() == 128);
  int target = 0;
  auto reference =
      autotune("by_reference", blocks(), [](const Config&, int& wanted) -> int& { return wanted; });
  CHECK(&reference(target) == &target);
  CHECK(&reference(target) == &target);
}

TEST_CASE("While a stream is captured a function runs once, with its default", "[autotune]") {
  Runs runs;
  const Program& program = Program::on();
  CUstream stream = nullptr;
  REQUIRE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  std::vector<unsigned> seen;
  auto add = autotune(
      "captured", blocks(),
      [&](const Config& config) {
        seen.push_back(block_of(config));
        return program.add(runs.y, 8, 1.0F, 1, block_of(config), stream);
      },
      short_runs());
  REQUIRE(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  CHECK(add() == CUDA_SUCCESS);
  CUgraph graph = nullptr;
  REQUIRE(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
  CHECK(seen == std::vector<unsigned>{256});

  // From then on it is tuned as ever.
  CHECK(add() == CUDA_SUCCESS);
  CHECK(seen.back() == 128);
  cuGraphDestroy(graph);
  cuStreamDestroy(stream);
}

TEST_CASE("What a run changes is put back before the next", "[autotune]") {
  const Program& program = Program::on();
  const CUdeviceptr y = program.floats(8);
  auto add = autotune(
      "restored", blocks(),
      [&](const Config& config) { return program.add(y, 8, 1.0F, 1, block_of(config)); },
      {.n_warmup = 0, .n_repeat = 2, .restore = {{reinterpret_cast<void*>(y), 8 * sizeof(float)}}});
  add();
  CHECK(Program::read(y, 8) == std::vector<float>(8, 1.0F));
  add();
  CHECK(Program::read(y, 8) == std::vector<float>(8, 2.0F));
}

TEST_CASE("Threads that call a function with keys of their own tune them side by side",
          "[autotune]") {
  Program::on();
  std::vector<std::thread> threads;
  std::array<std::atomic<int>, 3> runs{};
  auto add = autotune(
      "of_threads", blocks(), [](int key, CUdeviceptr) { return key; },
      [&](const Config& config, int key, CUdeviceptr y) {
        ++runs.at(static_cast<std::size_t>(key));
        return Program::on().add(y, 8, 1.0F, 1, block_of(config));
      },
      {.repeatable = true});
  for (int i = 0; i < 3; ++i) threads.emplace_back([&add, i] { add(i, Program::on().floats(8)); });
  for (std::thread& thread : threads) thread.join();
  // Which config has won depends on what the others did to the times.
  CHECK(log_lines({"event=winner", "site=of_threads"}).size() == 3);
  for (int i = 0; i < 3; ++i) {
    const int before = runs.at(static_cast<std::size_t>(i));
    CHECK(before > 3 * 15);
    add(i, Program::on().floats(8));
    CHECK(runs.at(static_cast<std::size_t>(i)) == before + 1);
  }
}

TEST_CASE("Two functions of one name that keep other configs do not break the program",
          "[autotune]") {
  Runs runs;
  const auto make = [&](unsigned most) {
    return autotune(
        "same_name", blocks(), size_of,
        [=](const Config& config, int) { return block_of(config) <= most; }, runs.function(),
        short_runs());
  };
  make(256)(4096);
  CHECK(runs.of[4096].back() == 128);
  make(64)(4096);
  CHECK(runs.of[4096].back() == 64);
  CHECK(log_lines({"event=fallback", "reason=rule_error", "same_name", "other configs"}).size() ==
        1);
  make(256)(4096);
  CHECK(runs.of[4096].back() == 128);
}

// The last one: it leaves no regions to the process.
TEST_CASE("Keys that change all the time cost no more than their default", "[autotune]") {
  Program::on();
  int runs = 0;
  auto count = autotune("endless", ConfigSpace().parameter("x", {1, 2}), size_of,
                        [&](const Config&, int) { ++runs; }, {.repeatable = true});
  constexpr int keys = 20'000;
  for (int n = 0; n < keys; ++n) count(n);
  const int before = runs;
  count(keys);
  CHECK(runs == before + 1);
  CHECK(log_lines({"event=fallback", "reason=too_many_sites", "region=endless"}).size() == 1);
  CHECK(log_lines({"event=fault", "endless"}).empty());
}
