// What a call costs whose work goes to several streams: the stretch that it takes, not the sum.
#include <cstdlib>
#include <string>
#include <vector>

#include <contextune/contextune.hpp>

#include "catch.hpp"
#include "program.hpp"
#include "short_tuning.hpp"

using contextune::Config;
using contextune::ConfigSpace;
using contextune::Tunable;

namespace {

void require(CUresult result) {
  if (result != CUDA_SUCCESS) std::abort();
}

/// Two streams, and what makes the second wait for the first and back.
struct Streams {
  Streams() {
    require(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    require(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    require(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  }
  void order(CUstream before, CUstream after) const {
    require(cuEventRecord(event, before));
    require(cuStreamWaitEvent(after, event, 0));
  }
  CUstream first = nullptr;
  CUstream second = nullptr;
  CUevent event = nullptr;
};

double time_us(const std::string& line) {
  const auto at = line.find("time_us=");
  return at == line.npos ? -1 : std::strtod(line.c_str() + at + 8, nullptr);
}

/// Of all samples of that config of a site.
std::vector<double> times(const std::string& site, int config) {
  std::vector<double> all;
  for (const std::string& line :
       log_lines({"event=trial", "site=" + site, " config=" + std::to_string(config) + " "}))
    all.push_back(time_us(line));
  return all;
}

}  // namespace

TEST_CASE("A call on two streams takes the stretch that they take together", "[span]") {
  const Program& program = Program::on();
  const Streams streams;
  const CUdeviceptr x = program.floats(64);
  const CUdeviceptr y = program.floats(64);
  // On one stream, or on two: the same launches.
  const auto launch = [&](const Config& config) {
    const bool two = config.get_int("streams") == 2;
    require(program.add(x, 64, 1.0F, 1, 128, streams.first));
    if (two) streams.order(streams.first, streams.second);
    for (int i = 0; i < 3; ++i) {
      require(program.add(x, 64, 1.0F, 1, 128, streams.first));
      require(program.add(y, 64, 1.0F, 1, 128, two ? streams.second : streams.first));
    }
    if (two) streams.order(streams.second, streams.first);
  };
  const auto space = ConfigSpace().parameter("streams", {1, 2});
  Tunable span("on_streams", space, launch);
  span.time_as_span();
  Tunable sum("summed", space, launch);
  CONTEXTUAL_AUTOTUNE("streams", short_table()) {
    span();
    span();
    sum();
  }
  const auto in_turn = times("on_streams", 0);
  const auto at_once = times("on_streams", 1);
  REQUIRE(in_turn.size() == 2);
  REQUIRE(at_once.size() == 2);
  CHECK(at_once[1] < 0.7 * in_turn[1]);
  CHECK(log_lines({"event=winner", "site=on_streams", "streams=2"}).size() == 1);
  // As a sum both are the same work.
  const auto summed = times("summed", 1);
  REQUIRE(summed.size() == 2);
  CHECK(summed[1] > 0.9 * times("summed", 0)[1]);
}

TEST_CASE("A function is judged by the stretch that its work takes, not by the sum", "[span]") {
  const Program& program = Program::on();
  const Streams streams;
  const CUdeviceptr x = program.floats(64);
  const CUdeviceptr y = program.floats(64);
  // On two streams it is more work, in less time.
  auto function = contextune::autotune(
      "overlapping", ConfigSpace().parameter("streams", {1, 2}),
      [&](const Config& config) {
        const bool two = config.get_int("streams") == 2;
        require(program.add(x, 64, 1.0F, 1, 128, streams.first));
        if (two) streams.order(streams.first, streams.second);
        for (int i = 0; i < (two ? 4 : 3); ++i) {
          require(program.add(x, 64, 1.0F, 1, 128, streams.first));
          require(program.add(y, 64, 1.0F, 1, 128, two ? streams.second : streams.first));
        }
        if (two) streams.order(streams.second, streams.first);
        return CUDA_SUCCESS;
      },
      {.n_warmup = 0, .n_repeat = 2, .repeatable = true});
  require(function());
  const auto in_turn = times("overlapping", 0);
  const auto at_once = times("overlapping", 1);
  REQUIRE(in_turn.size() == 2);
  REQUIRE(at_once.size() == 2);
  CHECK(at_once[1] < 0.9 * in_turn[1]);
  CHECK(log_lines({"event=winner", "site=overlapping", "streams=2"}).size() == 1);
}

TEST_CASE("What is tuned by itself begins each run when the GPU has done the one before",
          "[span]") {
  const Program& program = Program::on();
  const CUdeviceptr y = program.floats(1U << 20U);
  int runs = 0, behind_another = 0;
  auto function = contextune::autotune(
      "by_itself", ConfigSpace().parameter("launches", {1, 4}),
      [&](const Config& config) {
        ++runs;
        behind_another += cuStreamQuery(nullptr) == CUDA_ERROR_NOT_READY ? 1 : 0;
        for (std::int64_t i = 0; i < config.get_int("launches"); ++i)
          require(program.add(y, 1U << 20U, 1.0F, 1, 128));
        return CUDA_SUCCESS;
      },
      {.n_warmup = 1, .n_repeat = 3, .repeatable = true});
  require(function());
  CHECK(runs >= 8);
  CHECK(behind_another == 0);
}

#ifndef __SANITIZE_THREAD__  // its own thread keeps CUPTI from being released
TEST_CASE("Calls of few and of many launches are compared without CUPTI, which makes each dearer",
          "[span]") {
  const char* const timer = std::getenv("CONTEXTUNE_TIMER");
  if (timer != nullptr && std::string(timer) == "events") return;
  const Program& program = Program::on();
  const CUdeviceptr y = program.floats(64);
  Tunable many("many_launches", ConfigSpace().parameter("launches", {8, 1}),
               [&](const Config& config) {
                 for (std::int64_t i = 0; i < config.get_int("launches"); ++i)
                   require(program.add(y, 64, 1.0F, 1, 128));
               });
  many.time_as_span();
  const auto released = [] { return log_lines({"event=timer", "action=release"}).size(); };
  const std::size_t before = released();
  std::size_t at_end = 0;
  CONTEXTUAL_AUTOTUNE("many_launches",
                      {.repeatable = true, .n_warmup = 0, .n_repeat = 2, .refine = false}) {
    many();
    if (log_lines({"event=confirm", "region=many_launches"}).empty()) at_end = released();
  }
  CHECK(log_lines({"event=confirm", "region=many_launches", "verdict=kept"}).size() == 1);
  CHECK(at_end == before + 1);
}
#endif

// Not by the simulated CUPTI, which has no records of the calls that copy.
TEST_CASE("Copies and fills are part of a call's stretch", "[span]") {
  const char* const timer = std::getenv("CONTEXTUNE_TIMER");
  if (timer == nullptr || std::string(timer) != "events") return;
  const Program& program = Program::on();
  constexpr std::size_t count = 1U << 22U;
  const CUdeviceptr x = program.floats(count);
  const CUdeviceptr y = program.floats(count);
  Tunable copying("copying", ConfigSpace().parameter("copies", {8, 1}), [&](const Config& config) {
    require(program.add(x, 64, 1.0F, 1, 128));
    for (std::int64_t i = 0; i < config.get_int("copies"); ++i)
      require(cuMemcpyDtoDAsync(y, x, count * sizeof(float), nullptr));
    require(cuMemsetD32Async(y, 0, 64, nullptr));
  });
  copying.time_as_span();
  CONTEXTUAL_AUTOTUNE("copying", short_table()) {
    copying();
  }
  const auto eight = times("copying", 0);
  const auto one = times("copying", 1);
  REQUIRE(eight.size() == 2);
  REQUIRE(one.size() == 2);
  CHECK(eight[1] > 2 * one[1]);
  CHECK(log_lines({"event=winner", "site=copying", "copies=1"}).size() == 1);
}
