// What is asked for before the program has initialised CUDA, and before it has made a context.
// Cases run in this order, in one process.
#include <cuda.h>

#include <string>
#include <tuple>
#include <vector>

#include <contextune/contextune.hpp>

#include "added.hpp"
#include "catch.hpp"

using contextune::Config;
using contextune::ConfigSpace;

namespace {

constexpr int num_elements = 64;

/// A choice and a function that are there before CUDA is, with arguments of their own.
struct Early {
  std::vector<std::string> ran;
  std::vector<unsigned> blocks;
  int num_inputs = 0;
  Add add{"early", quick()};
  Add pinned{"pinned_early", quick()};

  Early() {
    for (Add* one : {&add, &pinned}) {
      one->make_inputs([this](const contextune::Problem&) {
           ++num_inputs;
           return std::tuple<CUdeviceptr, int>(Program::on().floats(num_elements), num_elements);
         })
          .buffers(memory_of)
          .add("plain", adding(ran, "plain", 256))
          .add("fast", adding(ran, "fast", 128))
          .add("middle", adding(ran, "middle", 64));
    }
  }
};

Early& early() {
  static Early kept;
  return kept;
}

auto& early_function() {
  static auto function =
      contextune::autotune("early_function", ConfigSpace().parameter("block", {256, 128}),
                           [](const Config& config, CUdeviceptr y) {
                             const auto block = static_cast<unsigned>(config.get_int("block"));
                             early().blocks.push_back(block);
                             return Program::on().add(y, num_elements, 1.0F, 1, block);
                           },
                           {.n_warmup = 0, .n_repeat = 2, .repeatable = true})
          .size([](CUdeviceptr) { return num_elements; })
          .inputs([](std::uint64_t) {
            ++early().num_inputs;
            return std::tuple(Program::on().floats(num_elements));
          });
  return function;
}

}  // namespace

TEST_CASE("Before CUDA is initialised nothing is measured, and that is said", "[early]") {
  REQUIRE(contextune_current_state() == contextune_state_off);
  for (Add* one : {&early().add, &early().pinned}) {
    CHECK(one->timings({}).empty());
    CHECK(std::string(contextune_error()) == contextune_state_reason());
    CHECK(std::string(contextune_error()).find("CUDA has not been initialised") !=
          std::string::npos);
  }
  CHECK_FALSE(early_function().tune(num_elements));
  CHECK(early().num_inputs == 0);
  CHECK(early().ran.empty());
  CHECK(early().blocks.empty());
  CUcontext context = nullptr;
  CHECK(cuCtxGetCurrent(&context) == CUDA_ERROR_NOT_INITIALIZED);
}

TEST_CASE("Before there is a context it is measured in what the inputs make", "[early]") {
  REQUIRE(cuInit(0) == CUDA_SUCCESS);
  const auto timings = early().add.timings({});
  REQUIRE(timings.size() == 3);
  CHECK(of(timings, "fast").samples == 2);
  CHECK(of(timings, "fast").is_winner);
  CHECK(early_function().tune(num_elements));
  CHECK(early().blocks.back() == 128);
  CHECK(log_lines({"event=winner", "site=early_function", "block=128"}).size() == 1);
}

TEST_CASE("What the operator says holds for what was asked for before CUDA was there", "[early]") {
  early().pinned(Program::on().floats(num_elements), num_elements);
  CHECK(early().ran.back() == "middle");
}

TEST_CASE("Where a body cannot be repeated a function is not tuned, and that is said", "[early]") {
  auto function = contextune::autotune("inside", ConfigSpace().parameter("block", {256, 128}),
                                       [](const Config&, int) {})
                      .inputs([](std::uint64_t) { return std::tuple(1); });
  CONTEXTUAL_AUTOTUNE("around") {
    CHECK_FALSE(function.tune(1));
    CHECK(contextune_current_place() == contextune_place_region);
  }
  CHECK(function.tune(1));
  CHECK(function.tune(1));
}
