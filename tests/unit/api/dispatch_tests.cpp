// What a call of a settled function takes.
#include <cstdint>
#include <set>
#include <string>

#include <contextune/contextune.hpp>

#include "catch.hpp"
#include "program.hpp"
#include "tools/benchmarks/counted_malloc.hpp"

using contextune::autotune;
using contextune::Config;
using contextune::ConfigSpace;

namespace {

/// Allocations of that many calls, of all of the process.
template <class Call>
std::uint64_t allocations_of(const Call& call) {
  const std::uint64_t before = bench::allocations;
  for (int n = 0; n < 100; ++n) call(1 + n % 4);
  return bench::allocations - before;
}

const auto space = ConfigSpace().parameter("block", {256, 128});

}  // namespace

TEST_CASE("A call of a settled function allocates nothing", "[dispatch]") {
  const Program& program = Program::on();
  const CUdeviceptr y = program.floats(8);
  bool launches = true;
  int last = 0;
  const auto body = [&](const Config& config, int) {
    last = static_cast<int>(config.get_int("block"));
    return launches ? program.add(y, 8, 1.0F, 1, static_cast<unsigned>(last)) : CUDA_SUCCESS;
  };
  auto by_number =
      autotune("by_number", space, [](int n) { return n; }, body, {.repeatable = true});
  auto by_tuple = autotune("by_tuple", space, [](int n) { return std::tuple(n, true, 'x'); }, body,
                           {.repeatable = true});
  auto by_size =
      autotune("by_size", space, body, {.repeatable = true}).size([](int n) { return 1 << n; });
  auto near = autotune("by_near", space, body,
                       {.repeatable = true,
                        .hints = {64},
                        .unseen = contextune::UnseenSize::Nearest,
                        .nearest_within = 64})
                  .size([](int n) { return 1 << n; })
                  .inputs([](std::uint64_t) { return std::tuple(6); });
  contextune::Tunable tunable("as_tunable", space,
                              [&](const Config& config) { return body(config, 1); });
  contextune::Tunable keyed(
      "as_keyed_tunable", space, [](int n) { return n; }, body);
  contextune::Choice<CUresult(int)> choice("as_choice", {.repeatable = true});
  choice.add("small", space, body).size([](int n) { return std::size_t{1} << n; });
  choice.type([](int n) { return n % 2 == 0 ? "bf16" : "a type in two words"; });
  for (int n = 1; n <= 4; ++n) {
    by_number(n);
    by_tuple(n);
    by_size(n);
    near(n);
    choice(n);
  }
  CONTEXTUAL_AUTOTUNE("around_tunable", {.repeatable = true}) {
    tunable();
    for (int n = 1; n <= 4; ++n) keyed(n);
  }
  REQUIRE(allocations_of([&](int) { delete[] new int[100]; }) >= 100);

  launches = false;
  last = 0;
  CHECK(allocations_of([&](int n) { by_number(n); }) == 0);
  CHECK(last == 128);
  CHECK(allocations_of([&](int n) { by_tuple(n); }) == 0);
  CHECK(allocations_of([&](int n) { by_size(n); }) == 0);
  last = 0;
  CHECK(allocations_of([&](int n) { near(n); }) == 0);
  CHECK(last == 128);
  CHECK(allocations_of([&](int) { tunable(); }) == 0);
  last = 0;
  CHECK(allocations_of([&](int n) { keyed(n); }) == 0);
  CHECK(last == 128);
  last = 0;
  CHECK(allocations_of([&](int n) { choice(n); }) == 0);
  CHECK(last == 128);
}

TEST_CASE("Problems of a choice differ by size, type and key, whatever their form", "[dispatch]") {
  static_cast<void>(Program::on());
  using contextune::Key;
  using contextune::Problem;
  contextune::Choice<void(int)> choice("told_apart", {.repeatable = true});
  std::set<std::string> asked;
  choice.add("first", [](const Config&, int) {});
  choice.add("second", [](const Config&, int) {}, {.supports = [&](const Problem& problem) {
               asked.insert(std::to_string(problem.bytes) + "/" + std::string(problem.type) + "/" +
                            std::string(problem.key));
               return false;
             }});
  choice.key([](int n) { return n; });
  const std::string longer(200, 'x');
  for (int round = 0; round < 2; ++round) {
    for (const std::size_t bytes : {0U, 2U, 64U}) {
      for (const std::string& type : {std::string(), std::string("f32"), longer, longer + "y"}) {
        const Problem problem{.bytes = bytes, .type = type};
        for (const int n : {0, 1, 0x663332}) static_cast<void>(choice.timings(problem, n));
        static_cast<void>(choice.timings(problem, Key{{"n", "f32"}}));
      }
    }
  }
  CHECK(asked.size() == 48);
}
