#include <set>

#include "catch.hpp"
#include "ranks.hpp"

namespace {

std::string tuner(int version) {
  return std::string(SIMNCCL_TEST_TUNERS) + "/libsimnccl_test_tuner_v" + std::to_string(version) +
         ".so";
}

Variables with_tuner(int version = 5) {
  return {{"NCCL_TUNER_PLUGIN", tuner(version)}};
}

}  // namespace

TEST_CASE("A tuner of every version is initialised, asked and finalised", "[simnccl]") {
  for (const int version : {3, 4, 5, 6}) {
    for (const RankEnd& end : run_ranks("one_all_reduce", 2, with_tuner(version))) {
      INFO(version << ": " << end.output);
      CHECK(end.status == 0);
      CHECK(lines_with(end.output, "init ").size() == 1);
      CHECK(lines_with(end.output, "asked ").size() == 1);
      CHECK(lines_with(end.output, "finalize 1").size() == 1);
    }
  }
}

TEST_CASE("A tuner is asked once for each collective, with the bytes of the larger side",
          "[simnccl]") {
  for (const RankEnd& end : run_ranks("one_of_each", 4, with_tuner())) {
    INFO(end.output);
    const auto asked = lines_with(end.output, "asked ");
    // Messages are nothing to be asked about. Tree, ring, two of CollNet, NVLS, NVLS tree, PAT.
    REQUIRE(asked.size() == 4);
    CHECK(asked[0] ==
          "asked function=4 bytes=16384 ops=1 table=7x3 channels=0 legal=111111000000001000000");
    CHECK(asked[1] ==
          "asked function=2 bytes=16384 ops=1 table=7x3 channels=0 legal=000111000000001000000");
    CHECK(asked[2] ==
          "asked function=3 bytes=16384 ops=1 table=7x3 channels=0 legal=000111000000001000000");
    CHECK(asked[3] ==
          "asked function=0 bytes=4096 ops=1 table=7x3 channels=0 legal=000111000000000000000");
  }
}

TEST_CASE("A group is asked about once for what is done as one", "[simnccl]") {
  for (const RankEnd& end : run_ranks("group", 2, with_tuner())) {
    INFO(end.output);
    const auto asked = lines_with(end.output, "asked ");
    REQUIRE(asked.size() == 3);
    CHECK(asked[0].find("function=2 bytes=8192 ops=1") != std::string::npos);
    CHECK(asked[1].find("function=4 bytes=65536 ops=3") != std::string::npos);
    CHECK(asked[2].find("function=4 bytes=256 ops=1") != std::string::npos);
  }
}

TEST_CASE("A group that is simulated is asked about, and does nothing", "[simnccl]") {
  for (const RankEnd& end : run_ranks("simulated_group", 2, with_tuner())) {
    INFO(end.output);
    CHECK(end.status == 0);
    const auto asked = end.output.find("asked "), simulated = end.output.find("simulated");
    CHECK(asked < simulated);
    CHECK(lines_with(end.output, "asked ").size() == 2);
  }
}

TEST_CASE("Without NVLS its cells are illegal", "[simnccl]") {
  Variables variables = with_tuner();
  variables.emplace_back("NCCL_NVLS_ENABLE", "0");
  for (const RankEnd& end : run_ranks("one_of_each", 4, variables))
    CHECK(lines_with(end.output, "asked ").at(0).find("legal=111111000000000000000") !=
          std::string::npos);
}

TEST_CASE("NCCL_ALGO and NCCL_PROTO restrict the table", "[simnccl]") {
  Variables variables = with_tuner();
  variables.emplace_back("NCCL_ALGO", "RING");
  variables.emplace_back("NCCL_PROTO", "^LL128");
  for (const RankEnd& end : run_ranks("one_all_reduce", 2, variables))
    CHECK(lines_with(end.output, "asked ").at(0).find("legal=000101000000000000000") !=
          std::string::npos);
}

TEST_CASE("All ranks of a communicator give the tuner the same number, each split another",
          "[simnccl]") {
  std::set<std::string> numbers;
  for (const RankEnd& end : run_ranks("split", 5, with_tuner())) {
    INFO(end.output);
    const auto lines = lines_with(end.output, "init ");
    for (const std::string& line : lines) {
      CHECK(line.find("given=1") != std::string::npos);
      numbers.insert(line);
    }
  }
  // The five ranks, the two even ones, the two odd ones.
  CHECK(numbers.size() == 3);
}

TEST_CASE("A tuner that cannot start stops the communicator", "[simnccl]") {
  Variables variables = with_tuner();
  variables.emplace_back("TEST_TUNER_INIT_FAILS", "1");
  for (const RankEnd& end : run_ranks("refused_creation", 2, variables)) CHECK(end.status == 0);
}

TEST_CASE("Without a tuner, or with one that cannot be loaded, the table decides", "[simnccl]") {
  for (const char* const plugin : {"none", "/nowhere/tuner.so", "STATIC_PLUGIN"})
    for (const RankEnd& end : run_ranks("one_all_reduce", 2, {{"NCCL_TUNER_PLUGIN", plugin}})) {
      CHECK(end.status == 0);
      CHECK(lines_with(end.output, "asked ").empty());
    }
}

TEST_CASE("A plugin that one communicator alone has used is unloaded with it", "[simnccl]") {
  for (const RankEnd& end : run_ranks("plugin_life", 1, with_tuner())) {
    INFO(end.output);
    CHECK(end.status == 0);
    CHECK(first_words(end.output) ==
          "loaded init finalize unloaded second loaded init init finalize finalize end unloaded ");
  }
}

TEST_CASE("The path of a plugin has at most 254 bytes", "[simnccl]") {
  const auto asked = [](std::size_t bytes) {
    std::string path = tuner(5);
    REQUIRE(path.size() < 240);
    path.insert(0, bytes - path.size(), '/');
    const auto ends = run_ranks("one_all_reduce", 2, {{"NCCL_TUNER_PLUGIN", path}});
    CHECK(ends[0].status == 0);
    return lines_with(ends[0].output, "asked ").size();
  };
  CHECK(asked(254) == 1);
  CHECK(asked(255) == 0);
}

TEST_CASE("A preloaded tuner is found as a static plugin", "[simnccl]") {
  for (const RankEnd& end : run_ranks(
           "one_all_reduce", 2, {{"NCCL_TUNER_PLUGIN", "Static_Plugin"}, {"LD_PRELOAD", tuner(5)}}))
    CHECK(lines_with(end.output, "asked ").size() == 1);
}
