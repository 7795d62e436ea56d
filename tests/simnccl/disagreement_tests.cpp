#include "catch.hpp"
#include "ranks.hpp"

namespace {

constexpr int deadline_hit = 86;

std::string tuner() {
  return std::string(SIMNCCL_TEST_TUNERS) + "/libsimnccl_test_tuner_v5.so";
}

bool says(const RankEnd& end, const std::string& text) {
  return end.output.find(text) != std::string::npos;
}

std::vector<RankEnd> run_until_deadline(Variables variables) {
  variables.emplace_back("SIMNCCL_DEADLINE_S", "2");
  return run_ranks("one_all_reduce", 2, variables);
}

// Rank 1 chooses something; rank 0 takes the cheapest, RING/LL128 on all channels.
std::vector<RankEnd> rank_1_chooses(const std::string& choice) {
  return run_until_deadline({{"NCCL_TUNER_PLUGIN", tuner()},
                             {"TEST_TUNER", choice},
                             {"TEST_TUNER_RANK", "1"},
                             {"NCCL_ALGO", "RING,TREE"}});
}

}  // namespace

TEST_CASE("Ranks that choose different protocols hang", "[simnccl]") {
  for (const RankEnd& end : rank_1_chooses("1 2 0")) {
    INFO(end.output);
    CHECK(end.status == deadline_hit);
    CHECK(says(end, "RING/SIMPLE on 24 channels"));
    CHECK_FALSE(says(end, "sum"));
  }
}

TEST_CASE("Ranks that choose different numbers of channels hang", "[simnccl]") {
  for (const RankEnd& end : rank_1_chooses("1 1 3")) {
    INFO(end.output);
    CHECK(end.status == deadline_hit);
    CHECK(says(end, "on 3 channels"));
    CHECK(says(end, "on 24 channels"));
  }
}

TEST_CASE("Ranks that choose different algorithms hang where they connect", "[simnccl]") {
  for (const RankEnd& end : rank_1_chooses("0 0 0")) {
    INFO(end.output);
    CHECK(end.status == deadline_hit);
    CHECK(says(end, "to connect"));
  }
}

TEST_CASE("Numbers of channels past the communicator's are the same choice", "[simnccl]") {
  for (const RankEnd& end : rank_1_chooses("1 1 60")) {
    INFO(end.output);
    CHECK(end.status == 0);
  }
}

TEST_CASE("A hang on the device lets the host go on, and an abort ends it", "[simnccl]") {
  for (const RankEnd& end :
       run_ranks("abort_of_hang", 2, {{"NCCL_TUNER_PLUGIN", tuner()}, {"NCCL_ALGO", "RING"}})) {
    INFO(end.output);
    CHECK(end.status == 0);
  }
}

TEST_CASE("An abort ends a connection that other ranks do not make", "[simnccl]") {
  for (const RankEnd& end : run_ranks("abort_of_connection", 2, {{"NCCL_TUNER_PLUGIN", tuner()}})) {
    INFO(end.output);
    CHECK(end.status == 0);
  }
}

TEST_CASE(
    "An abort ends the creation and the split of a communicator whose last rank does not come",
    "[simnccl]") {
  const std::string scenario = GENERATE("abort_of_creation", "abort_of_split");
  for (const RankEnd& end : run_ranks(scenario, 3)) {
    INFO(end.output);
    CHECK(end.status == 0);
  }
}

TEST_CASE("A connection that fails on one rank is an error there and a hang elsewhere",
          "[simnccl]") {
  const auto ends =
      run_until_deadline({{"SIMNCCL_FAULTS", "connect_fail:RING:rank=1"}, {"NCCL_ALGO", "RING"}});
  CHECK(ends[1].status == 1);
  CHECK(says(ends[1], "a connection failed"));
  CHECK(ends[0].status == deadline_hit);
}

TEST_CASE("A cell that is illegal on one rank only lets the ranks part", "[simnccl]") {
  for (const RankEnd& end : run_until_deadline(
           {{"SIMNCCL_FAULTS", "illegal:RING/LL128:rank=0"}, {"NCCL_ALGO", "RING"}})) {
    INFO(end.output);
    CHECK(end.status == deadline_hit);
  }
}

TEST_CASE("A choice can be slow and a connection large", "[simnccl]") {
  const auto time = [](const Variables& variables) {
    const auto ends = run_ranks("times", 2, variables);
    return std::stod(lines_with(ends[0].output, "together ").at(0).substr(9));
  };
  CHECK(time({{"SIMNCCL_FAULTS", "slow:RING:factor=5"}, {"NCCL_ALGO", "RING"}}) >
        3 * time({{"NCCL_ALGO", "RING"}}));
  const auto ends =
      run_ranks("memory", 2, {{"SIMNCCL_FAULTS", "connect_memory:*:memory=67108864"}});
  CHECK(says(ends[0], "connection 67108864"));
}

TEST_CASE("A result can be made wrong on one rank", "[simnccl]") {
  const auto ends = run_ranks("one_all_reduce", 2, {{"SIMNCCL_FAULTS", "wrong_result:*:rank=1"}});
  CHECK(says(ends[0], "sum 2\n"));
  CHECK_FALSE(says(ends[1], "sum 2\n"));
}

TEST_CASE("A setting that is not understood ends the process", "[simnccl]") {
  for (const char* const text : {"slow", "slow:RONG", "slow:RING/LX", "slow:RING:colour=3"})
    for (const RankEnd& end : run_ranks("one_all_reduce", 1, {{"SIMNCCL_FAULTS", text}}))
      CHECK(says(end, "is not understood"));
}
