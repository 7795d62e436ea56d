#include "catch.hpp"
#include "ranks.hpp"

namespace {

Variables with_tuner() {
  return {{"NCCL_TUNER_PLUGIN", std::string(SIMNCCL_TEST_TUNERS) + "/libsimnccl_test_tuner_v5.so"}};
}

}  // namespace

TEST_CASE("A tuner is asked while a graph is captured, and not when it is launched", "[simnccl]") {
  for (const RankEnd& end : run_ranks("captured", 3, with_tuner())) {
    INFO(end.output);
    CHECK(end.status == 0);
    CHECK(first_words(end.output) ==
          "loaded init capture asked asked launch call asked finalize unloaded ");
  }
}

TEST_CASE("A graph does its collectives in any order that its edges allow", "[simnccl]") {
  for (const char* const seed : {"1", "2", "3"})
    for (const RankEnd& end : run_ranks("captured", 2, {{"SIMCUDA_ORDER", seed}})) {
      INFO(end.output);
      CHECK(end.status == 0);
    }
}

TEST_CASE("A captured collective is a kernel of NCCL's that ends with its communicator",
          "[simnccl]") {
  for (const RankEnd& end : run_ranks("captured_kernel", 2, {{"NCCL_ALGO", "RING"}})) {
    INFO(end.output);
    CHECK(lines_with(end.output, "ended").size() == 1);
    CHECK(end.output.find("after the end of its communicator") != std::string::npos);
    CHECK(end.status == -1);
  }
}
