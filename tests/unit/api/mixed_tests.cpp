// Functions, choices and tunables of few and many launches, with what may go wrong in them, compute
// what they say, whatever is tried.
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <contextune/contextune.hpp>

#include "added.hpp"
#include "catch.hpp"

using contextune::Config;
using contextune::ConfigSpace;

namespace {

constexpr int length = 256;

/// One way to add `value` to all floats of y: in so many launches, or wrongly, or not at all.
struct Way {
  int launches = 1;
  unsigned block = 128;
  bool is_wrong = false;
  bool fails = false;

  CUresult run(CUdeviceptr y, float value) const {
    if (fails) return CUDA_ERROR_INVALID_VALUE;
    const Program& program = Program::on();
    CUresult result = CUDA_SUCCESS;
    const int part = length / launches;
    for (int i = 0; i < launches && result == CUDA_SUCCESS; ++i)
      result = program.add(y + static_cast<std::size_t>(i * part) * sizeof(float), part,
                           is_wrong ? value + 1 : value, 1, block);
    return result;
  }
};

class Drawn {
 public:
  explicit Drawn(unsigned seed) : random_(seed) {}
  int number(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }
  bool chance(int percent) { return number(1, 100) <= percent; }

  std::vector<Way> ways(int most, bool may_be_wrong) {
    std::vector<Way> all(static_cast<std::size_t>(number(1, most)));
    for (Way& way : all) {
      way.launches = 1 << number(0, 3);
      way.block = 32U << static_cast<unsigned>(number(0, 3));
      const bool is_default = &way == all.data();
      way.fails = !is_default && chance(20);
      way.is_wrong = !is_default && may_be_wrong && chance(20);
    }
    return all;
  }
  contextune::RegionOptions options() {
    contextune::RegionOptions some;
    some.n_warmup = number(0, 2);
    some.n_repeat = number(1, 3);
    some.refine = chance(60);
    some.confirm = chance(60);
    some.max_slowdown = 0;
    some.schedule = static_cast<contextune::ScheduleKind>(number(0, 2));
    if (chance(30)) some.align = contextune::Align::Sample;
    return some;
  }

 private:
  std::mt19937 random_;
};

std::vector<contextune::Value> numbers(std::size_t count) {
  std::vector<contextune::Value> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = static_cast<std::int64_t>(i);
  return all;
}

}  // namespace

TEST_CASE("Whatever is tuned in whatever way computes what it says", "[mixed]") {
  const unsigned seed = GENERATE(range(1U, 61U));
  INFO("seed " << seed);
  Drawn draw(seed);
  const std::string name = "mixed_" + std::to_string(seed);
  const CUdeviceptr y = Program::on().floats(length);
  const CUdeviceptr z = Program::on().floats(length);
  constexpr std::size_t bytes = length * sizeof(float);
  void* const in_both[] = {reinterpret_cast<void*>(y), reinterpret_cast<void*>(z)};

  auto function_ways = draw.ways(4, false);
  auto function = contextune::autotune(
      name + "_function", ConfigSpace().parameter("way", numbers(function_ways.size())),
      [&](const Config& config, CUdeviceptr to, float value) {
        return function_ways[static_cast<std::size_t>(config.get_int("way"))].run(to, value);
      },
      {.n_warmup = draw.number(0, 2),
       .n_repeat = draw.number(1, 3),
       .restore = {{in_both[0], bytes}},
       .region = draw.options()});

  auto choice_ways = draw.ways(4, true);
  contextune::Choice<CUresult(CUdeviceptr, float)> choice(name + "_choice", quick());
  choice.buffers([](CUdeviceptr to, float) { return memory_of(to, length); });
  for (std::size_t i = 0; i < choice_ways.size(); ++i)
    choice.add("way" + std::to_string(i),
               [&choice_ways, i](const Config&, CUdeviceptr to, float value) {
                 return choice_ways[i].run(to, value);
               });

  auto tunable_ways = draw.ways(4, false);
  contextune::Tunable tunable(
      name + "_tunable", ConfigSpace().parameter("way", numbers(tunable_ways.size())),
      [&](const Config& config, CUdeviceptr to, float value) {
        return tunable_ways[static_cast<std::size_t>(config.get_int("way"))].run(to, value);
      });
  if (draw.chance(50)) tunable.time_as_span();

  const bool uses_choice = draw.chance(60), uses_function = draw.chance(60);
  float in_y = 0, in_z = 0;
  const auto body = [&](float value) {
    if (uses_choice) REQUIRE(choice(y, value) == CUDA_SUCCESS);
    if (uses_function) REQUIRE(function(y, value + 1) == CUDA_SUCCESS);
    (void)tunable(z, value + 2);
  };
  const auto check = [&](float value) {
    in_z += value + 2;
    in_y += (uses_choice ? value : 0) + (uses_function ? value + 1 : 0);
    CHECK(read(z, length) == all(length, in_z));
    CHECK(read(y, length) == all(length, in_y));
  };
  contextune::RegionOptions options = draw.options();
  const bool repeats = draw.chance(60);
  if (repeats) options.restore = {{in_both[0], bytes}, {in_both[1], bytes}};
  if (draw.chance(40)) {
    body(0);
    check(0);
  }
  const int entries = repeats ? 2 : draw.number(1, 120);
  for (int i = 0; i < entries; ++i) {
    CONTEXTUAL_AUTOTUNE(name.c_str(), options) {
      body(1);
      if (!repeats && draw.chance(50)) Program::synchronise();
    }
    check(1);
  }
  for (int i = 0; i < 3; ++i) {
    body(static_cast<float>(i));
    check(static_cast<float>(i));
  }
  CHECK(log_lines({"reason=internal_error"}).empty());
  CHECK(log_lines({"event=fault"}).empty());
  for (std::size_t i = 0; i < choice_ways.size(); ++i)
    if (choice_ways[i].is_wrong || choice_ways[i].fails)
      CHECK(log_lines({"event=winner", "site=" + name + "_choice",
                       "implementation=way" + std::to_string(i)})
                .empty());
}

TEST_CASE("Whatever is captured, and by whom, computes what it says", "[mixed]") {
  const unsigned seed = GENERATE(range(1U, 41U));
  INFO("seed " << seed);
  Drawn draw(seed);
  const std::string name = "captured_" + std::to_string(seed);
  const CUdeviceptr y = Program::on().floats(length);
  CUstream stream = nullptr;
  REQUIRE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  const auto run = [stream](const Way& way, float value, CUdeviceptr to) {
    if (way.fails) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    const int part = length / way.launches;
    for (int i = 0; i < way.launches && result == CUDA_SUCCESS; ++i)
      result = Program::on().add(to + static_cast<std::size_t>(i * part) * sizeof(float), part,
                                 value, 1, way.block, stream);
    return result;
  };
  constexpr std::size_t bytes = length * sizeof(float);
  void* const in_y = reinterpret_cast<void*>(y);
  auto ways = draw.ways(4, false);
  auto function = contextune::autotune(
      name + "_function", ConfigSpace().parameter("way", numbers(ways.size())),
      [&](const Config& config, CUdeviceptr to, float value) {
        return run(ways[static_cast<std::size_t>(config.get_int("way"))], value, to);
      },
      {.n_warmup = 1, .n_repeat = 2, .restore = {{in_y, bytes}}, .region = draw.options()});
  contextune::Choice<CUresult(CUdeviceptr, float)> choice(name + "_choice", quick());
  choice.buffers([](CUdeviceptr to, float) { return memory_of(to, length); });
  for (std::size_t i = 0; i < ways.size(); ++i)
    choice.add("way" + std::to_string(i), [&, i](const Config&, CUdeviceptr to, float value) {
      return run(ways[i], value, to);
    });
  const bool uses_choice = draw.chance(70), uses_function = !uses_choice || draw.chance(50);
  float expected = 0;
  const auto body = [&] {
    if (uses_choice) REQUIRE(choice(y, 1) == CUDA_SUCCESS);
    if (uses_function) REQUIRE(function(y, 2) == CUDA_SUCCESS);
  };
  const float step = (uses_choice ? 1.0F : 0.0F) + (uses_function ? 2.0F : 0.0F);
  contextune::RegionOptions options = draw.options();
  if (draw.chance(40)) options.restore = {{in_y, bytes}};
  const auto mode = static_cast<CUstreamCaptureMode>(draw.number(0, 2));
  for (int round = 0; round < 6; ++round) {
    const bool captures = draw.chance(50), in_region = draw.chance(50);
    CUgraph graph = nullptr;
    INFO("round " << round << ", captured " << captures << ", in a region " << in_region);
    if (captures) REQUIRE(cuStreamBeginCapture(stream, mode) == CUDA_SUCCESS);
    if (in_region) {
      CONTEXTUAL_AUTOTUNE(name.c_str(), options) {
        body();
      }
    } else {
      body();
    }
    if (captures) {
      REQUIRE(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
      CUgraphExec exec = nullptr;
      REQUIRE(cuGraphInstantiate(&exec, graph, 0) == CUDA_SUCCESS);
      const int launches = draw.number(1, 3);
      for (int i = 0; i < launches; ++i) REQUIRE(cuGraphLaunch(exec, stream) == CUDA_SUCCESS);
      expected += step * static_cast<float>(launches - 1);
      REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
      REQUIRE(cuGraphExecDestroy(exec) == CUDA_SUCCESS);
      REQUIRE(cuGraphDestroy(graph) == CUDA_SUCCESS);
    }
    expected += step;
    REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
    REQUIRE(read(y, length) == all(length, expected));
  }
  CHECK(log_lines({"reason=internal_error"}).empty());
  CHECK(log_lines({"event=fault"}).empty());
  REQUIRE(cuStreamDestroy(stream) == CUDA_SUCCESS);
}
