// Ranks in processes of their own, on the simulated NCCL, which asks a tuner plugin as NCCL does.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>

#include "catch.hpp"
#include "process.hpp"

using namespace contextune::test;

namespace {

using Lines = std::vector<std::string>;
using Command = std::vector<std::string>;

std::string users_tuner(int version) {
  return std::string(CONTEXTUNE_TEST_TUNERS) + "/libsimnccl_test_tuner_v" +
         std::to_string(version) + ".so";
}

/// Of both processes, which write in any order; without what differs from run to run.
Lines sorted(const std::string& text) {
  Lines lines = lines_of(std::regex_replace(text, std::regex(" comm=[0-9a-f]+"), ""));
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::size_t count_with(const std::string& text, const std::string& part) {
  const Lines lines = lines_of(text);
  return static_cast<std::size_t>(
      std::count_if(lines.begin(), lines.end(),
                    [&](const std::string& line) { return line.find(part) != std::string::npos; }));
}

/// The record of a core that is told everything and decides as `environment` says.
std::string recorded(const Command& command, const Environment& environment = {}) {
  const Recorded result = run_recorded(command, environment);
  INFO(result.outcome.out << result.outcome.err << result.record);
  CHECK(result.outcome.exited_with(0));
  return result.record;
}

const Command linked = {client("nccl_rank"), "plain"};
const Command looked_up = {client("nccl_rank_looked_up"), "plain", CONTEXTUNE_SIMNCCL};
const Command grouped = {client("nccl_rank"), "grouped"};
const Command nonblocking = {client("nccl_rank"), "nonblocking"};

}  // namespace

TEST_CASE("Ranks compute the same under the frontend, with and without a core", "[nccl_ranks]") {
  for (const Command& command : {linked, looked_up, grouped, nonblocking}) {
    const Outcome bare = run(command);
    INFO(bare.out << bare.err);
    REQUIRE(bare.exited_with(0));
    CHECK(sorted(bare.out).size() == (command == nonblocking ? 4 : 10));
    CHECK(sorted(run_preloaded(command).out) == sorted(bare.out));
    const Recorded recorded = run_recorded(command);
    INFO(recorded.outcome.out << recorded.outcome.err);
    CHECK(sorted(recorded.outcome.out) == sorted(bare.out));
  }
}

TEST_CASE("Ranks compute the same under contextune", "[nccl_ranks]") {
  for (const Command& command : {linked, looked_up, grouped, nonblocking}) {
    const Outcome bare = run(command);
    const Outcome tuned = run(command, {{"LD_PRELOAD", CONTEXTUNE_PRELOAD}});
    INFO(tuned.out << tuned.err);
    CHECK(tuned.exited_with(0));
    CHECK(sorted(tuned.out) == sorted(bare.out));
  }
}

TEST_CASE("NCCL asks us once for each communicator and each decision", "[nccl_ranks]") {
  for (const Command& command : {linked, looked_up, grouped}) {
    const std::string record = recorded(command);
    INFO(record);
    // Two ranks, each with a communicator and a part of it.
    CHECK(count_with(record, "tuner begin id 1 nranks 2 nnodes 1 version 6 state 0 users 0") == 4);
    CHECK(count_with(record, "tuner end 7") == 4);
    // All-reduce, broadcast, two in a group, all-reduce of the part.
    CHECK(count_with(record, "tuner asked 7 ") == 10);
    CHECK(count_lines(record,
                      "tuner asked 7 function 4 bytes 262144 ops 1 table 7x3 registered 0 "
                      "cheapest 1 0 channels 0") == 2);
    CHECK(count_with(record, "nccl before ncclAllReduce") == 6);
    CHECK(count_with(record, "nccl after ncclCommSplit") == 2);
    CHECK(count_with(record, " result 0") == count_with(record, "nccl after"));
  }
}

TEST_CASE("A communicator that does not block brings NCCL to us too", "[nccl_ranks]") {
  const std::string record = recorded(nonblocking);
  INFO(record);
  CHECK(count_with(record, "tuner begin") == 2);
  CHECK(count_with(record, "tuner asked") == 2);
  CHECK(count_with(record, "nccl after ncclCommInitRankConfig") == 2);
}

TEST_CASE("One process may be all ranks, on a device each", "[nccl_ranks]") {
  const Command command = {client("nccl_rank"), "all"};
  const Environment devices = {{"SIMCUDA_DEVICES", "2"}};
  const Outcome bare = run(command, devices);
  INFO(bare.out << bare.err);
  REQUIRE(bare.exited_with(0));
  const Recorded result = run_recorded(command, devices);
  INFO(result.record);
  CHECK(result.outcome == bare);
  CHECK(run(command, {{"SIMCUDA_DEVICES", "2"}, {"LD_PRELOAD", CONTEXTUNE_PRELOAD}}).out ==
        bare.out);
  CHECK(count_with(result.record, "nccl after ncclCommInitAll") == 1);
  CHECK(count_with(result.record, "nranks 2 rank -1 color -1 key 0 id 0 made 2") == 2);
  CHECK(count_with(result.record, "tuner begin") == 2);
  CHECK(count_with(result.record, "tuner asked") == 2);
}

TEST_CASE("What the core decides is what NCCL does", "[nccl_ranks]") {
  const Recorded ring = run_recorded(linked, {{"CONTEXTUNE_TEST_DECIDE", "1 2 4"}});
  CHECK(ring.outcome.exited_with(0));
  CHECK(sorted(ring.outcome.out) == sorted(run(linked, {{"NCCL_ALGO", "RING"}}).out));
  // TREE is no choice for a broadcast: this core is wrong, and NCCL says so.
  CHECK(run_recorded(linked, {{"CONTEXTUNE_TEST_DECIDE", "0 2 4"}}).outcome.exited_with(1));
}

TEST_CASE("The user's own plugin is asked behind us, in each version", "[nccl_ranks]") {
  for (const int version : {3, 4, 5, 6}) {
    const Environment environment = {{"NCCL_TUNER_PLUGIN", users_tuner(version)}};
    const Outcome bare = run(linked, environment);
    const Outcome alone = run_preloaded(linked, environment);
    const Recorded beside = run_recorded(linked, environment);
    INFO(version << ": " << bare.out << beside.outcome.out << beside.record);
    CHECK(bare.exited_with(0));
    CHECK(count_with(bare.out, "asked ") == 10);
    CHECK(sorted(alone.out) == sorted(bare.out));
    CHECK(sorted(beside.outcome.out) == sorted(bare.out));
    CHECK(count_with(beside.record, " users " + std::to_string(version)) == 4);
    CHECK(count_with(beside.record, "tuner asked 7 ") == 10);
  }
}

TEST_CASE("The user's own plugin chooses where the core does not, and fails as it does alone",
          "[nccl_ranks]") {
  Environment environment = {{"NCCL_TUNER_PLUGIN", users_tuner(5)}, {"TEST_TUNER", "1 0 2"}};
  CHECK(sorted(run_recorded(linked, environment).outcome.out) ==
        sorted(run(linked, environment).out));
  environment["TEST_TUNER_INIT_FAILS"] = "1";
  const Outcome bare = run(linked, environment);
  CHECK(bare.exited_with(1));
  CHECK(run_recorded(linked, environment).outcome.exited_with(1));
}

TEST_CASE("The core decides over what the user's own plugin chose", "[nccl_ranks]") {
  Environment environment = {{"NCCL_TUNER_PLUGIN", users_tuner(5)}, {"TEST_TUNER", "1 1 2"}};
  const std::string told = recorded(linked, environment);
  INFO(told);
  CHECK(count_with(told, " cheapest 1 1 channels 2") == 10);
  environment["CONTEXTUNE_TEST_DECIDE"] = "1 2 4";
  const Recorded result = run_recorded(linked, environment);
  INFO(result.outcome.out);
  CHECK(result.outcome.exited_with(0));
  CHECK(count_with(result.outcome.out, "init ") == 4);
  CHECK(count_with(result.outcome.out, "asked ") == 10);
}

TEST_CASE("NCCL_ALGO and NCCL_PROTO switch our plugin off, which the core is told",
          "[nccl_ranks]") {
  for (const auto& [name, value] : Environment{{"NCCL_ALGO", "TREE,RING"}, {"NCCL_PROTO", "LL"}}) {
    const Environment environment = {{name, value}};
    const std::string record = recorded(linked, environment);
    INFO(record);
    CHECK(count_with(record, "tuner begin") == 0);
    CHECK(count_with(record, "nccl after ncclCommInitRank") == 2);
    CHECK(count_with(record, " tuner 2 library 1 result 0") > 2);
    CHECK(sorted(run_recorded(linked, environment).outcome.out) ==
          sorted(run(linked, environment).out));
  }
}

TEST_CASE("What the user wrote into NCCL's file counts as well", "[nccl_ranks]") {
  const auto file = std::filesystem::temp_directory_path() /
                    ("contextune-test-nccl-" + std::to_string(getpid()) + ".conf");
  const Environment environment = {{"NCCL_CONF_FILE", file.string()}};
  std::ofstream(file) << "# NCCL_ALGO=RING\nOTHER=1\nNCCL_TUNER_PLUGIN=" << users_tuner(4) << '\n';
  CHECK(count_with(recorded(linked, environment), " users 4") == 4);
  std::ofstream(file) << "NCCL_PROTO=LL";
  const std::string record = recorded(linked, environment);
  CHECK(count_with(record, "tuner begin") == 0);
  CHECK(count_with(record, " tuner 2 library 1 result 0") > 2);
  std::filesystem::remove(file);
}

TEST_CASE("A file of NCCL's settings that has no end is not read", "[nccl_ranks]") {
  CHECK(count_with(recorded(linked, {{"NCCL_CONF_FILE", "/dev/zero"}}), "tuner begin") == 4);
}

TEST_CASE("Of a plugin in the program's own scope the user's comes before ours", "[nccl_ranks]") {
  const Environment environment = {{"NCCL_TUNER_PLUGIN", "STATIC_PLUGIN"},
                                   {"LD_PRELOAD", users_tuner(5)}};
  const Outcome bare = run(linked, environment);
  CHECK(count_with(bare.out, "asked ") == 10);
  CHECK(sorted(run_recorded(linked, environment).outcome.out) == sorted(bare.out));
}

TEST_CASE("A variable that a parent left behind is not taken for the user's", "[nccl_ranks]") {
  const std::string record =
      recorded(linked, {{"NCCL_TUNER_PLUGIN", CONTEXTUNE_PRELOAD_WITH_CORE}});
  INFO(record);
  CHECK(count_with(record, "tuner begin id 1 nranks 2 nnodes 1 version 6 state 0 users 0") == 4);
}

TEST_CASE("A child that runs without us works under a variable that names us", "[nccl_ranks]") {
  const Outcome bare = run(linked);
  const Outcome child = run(linked, {{"NCCL_TUNER_PLUGIN", CONTEXTUNE_PRELOAD_ALONE}});
  INFO(child.out << child.err);
  CHECK(child.exited_with(0));
  CHECK(count_with(child.out, "all_reduce") == 2);
  CHECK(count_with(bare.out, "all_reduce") == 2);
}
