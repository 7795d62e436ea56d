#include <algorithm>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <contextune/contextune.hpp>

#include "added.hpp"
#include "catch.hpp"

using contextune::Choice;
using contextune::Config;
using contextune::Problem;

namespace {

/// That follows "NAME=".
std::size_t number(const std::string& line, const std::string& name) {
  return std::strtoul(line.c_str() + line.find(" " + name + "=") + name.size() + 2, nullptr, 10);
}

std::size_t allocations = 0;
std::size_t held = 0;  ///< of them, not freed

}  // namespace

void* operator new(std::size_t size) {
  ++allocations;
  ++held;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  if (memory != nullptr) --held;
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  operator delete(memory);
}

TEST_CASE("Adding implementations runs nothing", "[choice]") {
  Program::on();
  std::vector<std::string> ran;
  Add add("registered", quick());
  add.buffers(memory_of)
      .add("slow", adding(ran, "slow", 256))
      .add("fast", adding(ran, "fast", 128));
  CHECK(ran.empty());
  CHECK_THROWS_WITH(add.add("fast", adding(ran, "fast", 128)),
                    Catch::Contains("two implementations"));
}

TEST_CASE_METHOD(AddsToFloats, "A choice in a repeated region is searched in its passes",
                 "[choice]") {
  Add add("in_region", quick());
  add.buffers(memory_of)
      .add("slow", adding(ran, "slow", 256))
      .add("fast", adding(ran, "fast", 128))
      .add("middle", adding(ran, "middle", 64));
  CONTEXTUAL_AUTOTUNE("choice_in_region", {.restore = {{reinterpret_cast<void*>(y), 256}},
                                           .n_warmup = 0,
                                           .n_repeat = 2,
                                           .refine = false,
                                           .confirm = false}) {
    add(y, 64);
  }
  CHECK(ran.back() == "fast");
  CHECK(read(y, 64) == all(64, 1.0F));
  CHECK(log_lines(
            {"event=winner", "region=choice_in_region", "site=in_region", "implementation=fast"})
            .size() == 1);
  // Compared on what was there and on three other contents, as it reads it; and two samples.
  CHECK(times(ran, "middle") == 6);

  SECTION("whose winner runs outside of it as well") {
    ran.clear();
    add(y, 64);
    CHECK(ran == std::vector<std::string>{"fast"});
    CHECK(read(y, 64) == all(64, 2.0F));
  }
}

TEST_CASE_METHOD(AddsToFloats,
                 "A choice outside of a region is measured at once, on memory that is put back",
                 "[choice]") {
  Add add("alone", quick());
  add.buffers(memory_of)
      .add("slow", adding(ran, "slow", 256))
      .add("fast", adding(ran, "fast", 128));
  CHECK(add(y, 64) == CUDA_SUCCESS);
  CHECK(read(y, 64) == all(64, 1.0F));
  CHECK(ran.back() == "fast");
  const auto searched = ran.size();
  CHECK(searched > 4);
  add(y, 64);
  CHECK(read(y, 64) == all(64, 2.0F));
  CHECK(ran.size() == searched + 1);
  CHECK(log_lines({"event=winner", "site=alone", "implementation=fast"}).size() == 1);
}

TEST_CASE("A repeatable choice may be called several times in each pass", "[choice]") {
  Program::on();
  std::vector<std::string> ran;
  const auto search = [&](const char* name, int calls) {
    Add add(name, quick({.repeatable = true, .calls_per_pass = calls}));
    add.add("slow", adding(ran, "slow", 256)).add("fast", adding(ran, "fast", 128));
    const CUdeviceptr y = Program::on().floats(64);
    ran.clear();
    add(y, 64);
    return log_lines({"event=trial", std::string("site=") + name + " ",
                      "launches=" + std::to_string(calls) + " "})
        .size();
  };
  const auto trials = search("one_a_pass", 1);
  const auto runs = ran.size();
  CHECK(trials > 0);
  CHECK(search("three_a_pass", 3) == trials);
  CHECK(ran.back() == "fast");
  // Another call comes before those of each pass, so that the GPU is at work already.
  const auto confirmed = log_lines({"event=confirm", "three_a_pass"});
  REQUIRE(confirmed.size() == 1);
  const auto pairs = number(confirmed.front(), "pairs");
  CHECK(pairs > 0);
  CHECK(ran.size() >= 3 * runs + 2 * pairs + trials);
  CHECK(ran.size() <= 4 * runs);

  CHECK_THROWS_WITH(Add("not_so", quick({.calls_per_pass = 2})),
                    Catch::Contains("calls_per_pass is 2") && Catch::Contains("repeatable"));
}

TEST_CASE_METHOD(AddsToFloats, "Inputs of its own leave the caller's memory alone", "[choice]") {
  const CUdeviceptr own = program.floats(64);
  std::vector<CUdeviceptr> touched;
  static int number = 0;
  Add add("own_inputs_" + std::to_string(++number), quick());
  const auto noting = [&](unsigned block) {
    return [&touched, block](const Config&, CUdeviceptr at, int n) {
      touched.push_back(at);
      return Program::on().add(at, n, 1.0F, 1, block);
    };
  };
  add.make_inputs([&](const Problem&) { return std::tuple<CUdeviceptr, int>(own, 64); })
      .buffers(memory_of)
      .add("slow", noting(256))
      .add("fast", noting(128));

  SECTION("when it is called") {
    add(y, 64);
    CHECK(std::count(touched.begin(), touched.end(), y) == 1);
    CHECK(read(y, 64) == all(64, 1.0F));
  }
  SECTION("when its timings are asked for, which has it measured") {
    const auto timings = add.timings({});
    CHECK(std::count(touched.begin(), touched.end(), y) == 0);
    CHECK(touched.size() > 4);
    REQUIRE(timings.size() == 2);
    CHECK(timings[0].samples == 2);
    CHECK(timings[1].samples == 2);
    CHECK(timings[1].seconds < timings[0].seconds);
    CHECK(timings[1].is_winner);
    const auto searched = touched.size();
    CHECK(add.timings({}).size() == 2);
    CHECK(touched.size() == searched);
  }
}

TEST_CASE("A choice of a name that is taken, with other implementations, is another one",
          "[choice]") {
  const Program& program = Program::on();
  const CUdeviceptr y = program.floats(64);
  for (const unsigned fastest : {64U, 128U}) {
    std::vector<std::string> ran;
    Add add("same_name", quick());
    add.buffers(memory_of)
        .add("slow", adding(ran, "slow", 256))
        .add(fastest == 64 ? "small" : "large", adding(ran, "other", fastest));
    add(y, 64);
    CHECK(ran.back() == "other");
  }
  CHECK(log_lines({"event=winner", "site=same_name ", "implementation=small"}).size() == 1);
  CHECK(log_lines({"event=winner", "site=same_name#2", "implementation=large"}).size() == 1);
}

TEST_CASE_METHOD(AddsToFloats, "An implementation may call its choice for a part of the work",
                 "[choice]") {
  Add add("recursive", quick());
  add.size([](CUdeviceptr, int n) { return static_cast<std::size_t>(n) * sizeof(float); })
      .buffers(memory_of)
      .add("whole", adding(ran, "whole", 256))
      .add("halves", [&](const Config&, CUdeviceptr at, int n) {
        if (n == 1) return Program::on().add(at, n, 1.0F, 1, 128);
        add(at, n / 2);
        return add(at + static_cast<CUdeviceptr>(n / 2) * sizeof(float), n - n / 2);
      });
  CHECK(add(y, 64) == CUDA_SUCCESS);
  CHECK(read(y, 64) == all(64, 1.0F));
}

TEST_CASE_METHOD(AddsToFloats, "What may not be repeated keeps its default", "[choice]") {
  Add add("not_repeatable", quick());
  add.add("slow", adding(ran, "slow", 256)).add("fast", adding(ran, "fast", 128));
  add(y, 64);
  add(y, 64);
  CHECK(ran == std::vector<std::string>{"slow", "slow"});
  CHECK(log_lines({"reason=not_repeatable", "not_repeatable"}).size() == 1);

  SECTION("and in a region that is, it is searched without being compared") {
    CONTEXTUAL_AUTOTUNE("choice_uncompared", short_table()) {
      add(y, 64);
    }
    CHECK(ran.back() == "fast");
    CHECK(log_lines({"reason=no_outputs", "not_repeatable"}).size() == 1);
  }
}

TEST_CASE("What the default throws is the caller's", "[choice]") {
  Program::on();
  Add add("throwing_default", quick({.repeatable = true}));
  add.add("default",
          [](const Config&, CUdeviceptr, int) -> CUresult { throw std::out_of_range("mine"); })
      .add("other", [](const Config&, CUdeviceptr, int) { return CUDA_SUCCESS; });
  CHECK_THROWS_AS(add(0, 1), std::out_of_range);
}

TEST_CASE_METHOD(AddsToFloats,
                 "A default that fails where it is compared runs on memory that is as it was",
                 "[choice]") {
  Add add("failing_once", quick());
  const auto add_one = adding(ran, "default", 128);
  add.buffers(memory_of)
      .add("default",
           [&](const Config& config, CUdeviceptr to, int n) {
             const CUresult result = add_one(config, to, n);
             return ran.size() == 1 ? CUDA_ERROR_NOT_READY : result;
           })
      .add("other", adding(ran, "other", 256));
  CHECK(add(y, 64) == CUDA_SUCCESS);
  CHECK(read(y, 64) == all(64, 1.0F));
}

TEST_CASE_METHOD(AddsToFloats, "A live region tries what is right on the caller's own calls",
                 "[choice]") {
  Add add("in_live", quick());
  add.buffers(memory_of)
      .add("slow", adding(ran, "slow", 256))
      .add("fast", adding(ran, "fast", 128));
  // On a busy machine results may take their time to come.
  constexpr int settled = 8;  // runs of one, more than a trial has
  int entries = 0, of_fast = 0;
  for (; of_fast < settled && entries < 4000; ++entries) {
    CONTEXTUAL_AUTOTUNE(
        "choice_live",
        {.n_warmup = 0, .n_repeat = 2, .refine = false, .confirm = false, .max_slowdown = 0.0}) {
      add(y, 64);
    }
    Program::synchronise();
    of_fast = ran.back() == "fast" ? of_fast + 1 : 0;
  }
  CHECK(of_fast == settled);
  CHECK(read(y, 64) == all(64, static_cast<float>(entries)));
  // Beside the caller's own calls each ran four times, to be compared on as many contents.
  CHECK(ran.size() == static_cast<std::size_t>(entries) + 8);
}

TEST_CASE_METHOD(AddsToFloats, "A settled choice is called without an allocation", "[choice]") {
  Choice<void(CUdeviceptr, int)> add("settled", quick());
  int calls = 0;
  const auto doing = [&](unsigned block) {
    return [&calls, block](const Config&, CUdeviceptr at, int n) {
      ++calls;
      if (calls < 100) static_cast<void>(Program::on().add(at, n, 1.0F, 1, block));
    };
  };
  add.size([](CUdeviceptr, int n) { return static_cast<std::size_t>(n) * sizeof(float); })
      .type([](CUdeviceptr, int) { return "f32"; })
      .key([](CUdeviceptr, int n) { return n % 2; })
      .buffers(memory_of)
      .add("slow", doing(256))
      .add("fast", doing(128));
  add(y, 64);
  calls = 100;
  const std::size_t before = allocations;
  for (int i = 0; i < 100; ++i) add(y, 64);
  CHECK(allocations == before);
  CHECK(calls == 200);
}

TEST_CASE("A choice gives what the implementation gives", "[choice]") {
  Program::on();
  Choice<std::vector<int>(int)> value("value", {.repeatable = true, .n_repeat = 1});
  value.add("one", [](const Config&, int x) { return std::vector<int>{x}; });
  CHECK(value(7) == std::vector<int>{7});
  CHECK_THROWS_WITH(Choice<void()>("tolerance", {.tolerance = "f32"}),
                    Catch::Contains("tolerance"));
}

// The last one: it leaves no problems to the choice.
TEST_CASE("Keys that change all the time are not kept once there are too many", "[choice]") {
  Program::on();
  int runs = 0;
  Choice<void(int)> count("endless_keys");
  count.key([](int n) {
         return contextune::Key{{"n", n}};
       })
      .add("one", [&](const Config&, int) { ++runs; })
      .add("other", [&](const Config&, int) { ++runs; });
  constexpr int most = (1 << 14) - 1;
  for (int n = 0; n < most; ++n) count(n);
  const std::size_t before = held;
  for (int n = most; n < most + 1000; ++n) count(n);
  CHECK(held == before);
  CHECK(runs == most + 1000);
}
