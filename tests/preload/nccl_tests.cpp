// Which NCCL a call goes to, and what the core is told of it.
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <filesystem>

#include "catch.hpp"
#include "process.hpp"
#include "tests/scratch_folder.hpp"

using namespace contextune::test;

namespace {

const std::string copy_a = client("nccl_a/libnccl.so.2");
const std::string copy_b = client("nccl_b/libnccl.so.2");

using Lines = std::vector<std::string>;

/// What the core is told of NCCL, after the program was seen to print the same as without us.
Lines told(const std::vector<std::string>& command, const Environment& environment = {}) {
  const Outcome bare = run(command, environment);
  const Recorded recorded = run_recorded(command, environment);
  INFO(bare.out << bare.err << recorded.outcome.out << recorded.outcome.err);
  CHECK(bare.exited_with(0));
  CHECK(recorded.outcome.status == bare.status);
  CHECK(recorded.outcome.out == bare.out);
  CHECK(run_preloaded(command, environment).out == bare.out);
  Lines lines;
  for (const std::string& line : lines_of(recorded.record)) {
    if (line.starts_with("nccl ")) lines.push_back(line);
  }
  return lines;
}

/// "before ncclAllReduce", of each line.
Lines calls(const Lines& lines) {
  Lines result;
  for (const std::string& line : lines) {
    const auto begin = line.find(' ') + 1;
    result.push_back(line.substr(begin, line.find(' ', line.find(' ', begin) + 1) - begin));
  }
  return result;
}

Lines sees_plugin(const std::string& text) {
  Lines result;
  for (const std::string& line : lines_of(text)) {
    if (line.find(" sees plugin ") != std::string::npos) result.push_back(line);
  }
  return result;
}

}  // namespace

TEST_CASE("Calls of NCCL are told before and after, with their arguments", "[nccl]") {
  const Lines lines = told({client("nccl_direct"), "direct"});
  CHECK(calls(lines) ==
        Lines{"before ncclGetUniqueId", "after ncclGetUniqueId", "before ncclCommInitRank",
              "after ncclCommInitRank", "before ncclAllReduce",  "after ncclAllReduce",
              "before ncclBcast",       "after ncclBcast",       "before ncclGroupStart",
              "after ncclGroupStart",   "before ncclGroupStart", "after ncclGroupStart",
              "before ncclAllReduce",   "after ncclAllReduce",   "before ncclGroupEnd",
              "after ncclGroupEnd",     "before ncclGroupEnd",   "after ncclGroupEnd",
              "before ncclCommSplit",   "after ncclCommSplit",   "before ncclCommDestroy",
              "after ncclCommDestroy"});
  REQUIRE(lines.size() == 22);
  CHECK(lines[4] ==
        "nccl before ncclAllReduce comm 0x1001 count 1000 type 7 op 2 root -1 send 0x10 recv 0x20 "
        "stream 0x30 groups 0 nranks 0 rank -1 color -1 key 0 id 0 made 0 tuner 0 library 1 "
        "result -1");
  CHECK(lines[3].find("nranks 4 rank 1 color -1 key 0 id 1 made 1") != std::string::npos);
  CHECK(lines[12].find(" groups 2 ") != std::string::npos);
  CHECK(lines[18].find("comm 0x1001") != std::string::npos);
  CHECK(lines[18].find("color 2 key 5") != std::string::npos);
}

TEST_CASE("A result of NCCL is the program's, and told", "[nccl]") {
  const Lines lines = told({client("nccl_direct"), "direct"}, {{"FAKE_NCCL_RESULT", "5"}});
  CHECK(lines.size() == 22);
  CHECK(lines[5].ends_with("result 5"));
  CHECK(lines[12].find(" groups 0 ") != std::string::npos);  // neither group was opened
}

TEST_CASE("A core that has no use for messages is shown no group but the end of one that has more",
          "[nccl]") {
  const std::vector<std::string> command = {client("nccl_direct"), "messages"};
  const Lines all = calls(told(command));
  CHECK(std::ranges::count(all, "before ncclSend") == 3);
  CHECK(std::ranges::count(all, "before ncclGroupEnd") == 4);

  const Lines few = told(command, {{"CONTEXTUNE_TEST_CORE", "no messages"}});
  CHECK(calls(few) == Lines{"before ncclGetUniqueId", "after ncclGetUniqueId",
                            "before ncclCommInitRank", "after ncclCommInitRank",
                            "before ncclAllReduce", "after ncclAllReduce", "before ncclGroupEnd",
                            "after ncclGroupEnd", "before ncclGroupEnd", "after ncclGroupEnd",
                            "before ncclCommDestroy", "after ncclCommDestroy"});
  REQUIRE(few.size() == 12);
  CHECK(few[4].find(" groups 2 ") != std::string::npos);
  CHECK(few[8].find(" groups 1 ") != std::string::npos);

  const std::string shown = run_recorded(command).outcome.err;
  CHECK(count_lines(shown, "message: here 0 0, elsewhere 0 0") == 3);
  const std::string unshown =
      run_recorded(command, {{"CONTEXTUNE_TEST_CORE", "no messages"}}).outcome.err;
  CHECK(count_lines(unshown, "message: here 1 0, elsewhere 0 1") == 3);
}

TEST_CASE("What the program looks up in an NCCL is wrapped", "[nccl]") {
  CHECK(calls(told({client("nccl_direct"), "default"})) ==
        Lines{"before ncclAllReduce", "after ncclAllReduce"});
  CHECK(calls(told({client("nccl_direct"), "next"})) ==
        Lines{"before ncclAllReduce", "after ncclAllReduce"});
}

TEST_CASE("Without an NCCL a lookup fails as it does without us", "[nccl]") {
  CHECK(told({client("nccl_use"), "absent"}).empty());
  CHECK(run_preloaded({client("nccl_use"), "absent"}).out == "found 0 error 1\n");
}

TEST_CASE("Of several copies of NCCL each is called where it was looked up", "[nccl]") {
  const Lines lines = told({client("nccl_use"), "copies", copy_a, copy_b});
  CHECK(lines.size() == 6);
  const Outcome outcome = run_preloaded({client("nccl_use"), "copies", copy_a, copy_b});
  CHECK(count_lines(outcome.out, "copy a ncclAllReduce") == 2);
  CHECK(count_lines(outcome.out, "copy b ncclAllReduce") == 1);
}

TEST_CASE("More copies of NCCL than are told apart work all the same", "[nccl]") {
  namespace files = std::filesystem;
  std::vector<std::string> command = {client("nccl_use"), "copies"};
  const ScratchFolder folder;
  for (int i = 0; i < 6; ++i) {
    const files::path file = folder.path(std::to_string(i) + "/libnccl.so.2");
    files::create_directories(file.parent_path());
    files::copy_file(i % 2 == 0 ? copy_a : copy_b, file);
    command.push_back(file.string());
  }
  const Lines lines = told(command);
  // Four of the six, and the first once more.
  CHECK(lines.size() == 2 * 5);
}

TEST_CASE("A plugin calls the copy of NCCL that it was linked to", "[nccl]") {
  CHECK(calls(told({client("nccl_use"), "plugin", client("libnccl_plugin.so")})) ==
        Lines{"before ncclAllReduce", "after ncclAllReduce", "before ncclAllReduce",
              "after ncclAllReduce", "before ncclGroupStart", "after ncclGroupStart"});
  // Beside a program that has another one: it is the first in scope for both.
  const Outcome both =
      run_preloaded({client("nccl_direct"), "plugin", client("libnccl_plugin.so")});
  CHECK(both.out == run({client("nccl_direct"), "plugin", client("libnccl_plugin.so")}).out);
}

TEST_CASE("A library that jumps into NCCL at its end comes to the NCCL that it brought", "[nccl]") {
  CHECK(calls(told({client("nccl_use"), "plugin", client("libnccl_tail.so")})) ==
        Lines{"before ncclGroupStart", "after ncclGroupStart"});
}

TEST_CASE("NCCL_TUNER_PLUGIN names us while communicators are made, and at no other time",
          "[nccl]") {
  for (const Environment& environment :
       {Environment{}, Environment{{"NCCL_TUNER_PLUGIN", "own"}}}) {
    const std::string users = environment.empty() ? "(none)" : "own";
    const std::string ours = "libcontextune_preload.so";
    CHECK(told({client("nccl_direct"), "variable"}, environment).size() > 0);
    const Outcome outcome = run_recorded({client("nccl_direct"), "variable"}, environment).outcome;
    CHECK(sees_plugin(outcome.err) ==
          Lines{"ncclCommInitRank sees plugin " + ours, "ncclCommInitRank sees plugin " + ours,
                "ncclGroupEnd sees plugin " + ours, "ncclCommInitRank sees plugin " + ours,
                "ncclCommInitRankConfig sees plugin " + ours,
                "ncclCommDestroy sees plugin " + ours});
    CHECK(count_lines(outcome.out, "destroyed: " + users) == 1);
    CHECK(count_lines(outcome.out, "grouped: " + users) == 1);
  }
}

TEST_CASE("NCCL_TUNER_PLUGIN stays the user's where the user chose, or switched us off", "[nccl]") {
  for (const auto& [name, value] : Environment{{"NCCL_ALGO", "RING"},
                                               {"NCCL_PROTO", "Simple"},
                                               {"NCCL_CTA_POLICY", "1"},
                                               {"CONTEXTUNE_DISABLE", "1"}}) {
    INFO(name);
    const Outcome outcome =
        run_recorded({client("nccl_direct"), "variable"}, {{name, value}}).outcome;
    const Lines seen = sees_plugin(outcome.err);
    REQUIRE(seen.size() == 6);
    for (const std::string& line : seen) CHECK(line.ends_with("(none)"));
  }
}

TEST_CASE("NCCL's settings are looked up as they were when the core was attached", "[nccl]") {
  const Outcome outcome = run_recorded({client("nccl_direct"), "late"}).outcome;
  CHECK(sees_plugin(outcome.err) == Lines{"ncclCommInitRank sees plugin libcontextune_preload.so"});
  CHECK(count_lines(outcome.out, "in the end: late") == 1);
}

TEST_CASE("NCCL finds no plugin where a config asks for what it does without one only", "[nccl]") {
  for (const std::string& policy : Lines{"1", "3"}) {
    INFO(policy);
    const Outcome outcome = run_recorded({client("nccl_direct"), "policy", policy}).outcome;
    const Lines seen = sees_plugin(outcome.err);
    REQUIRE(seen.size() == 3);
    for (const std::string& line : seen) CHECK(line.ends_with("(none)"));
  }
  for (const std::string& policy : Lines{"0", "2", std::to_string(INT_MIN)}) {
    INFO(policy);
    const Outcome outcome = run_recorded({client("nccl_direct"), "policy", policy}).outcome;
    const Lines seen = sees_plugin(outcome.err);
    REQUIRE(seen.size() == 3);
    for (const std::string& line : seen) CHECK(line.ends_with("libcontextune_preload.so"));
  }
}

TEST_CASE("NCCL may ask us for the size of chunks only where the user's plugin names it",
          "[nccl]") {
  const std::vector<std::string> command = {client("nccl_direct"), "chunk"};
  CHECK(count_lines(run_recorded(command).outcome.err, "asked 0 chunk 1") == 1);
  const Outcome users =
      run_recorded(command, {{"NCCL_TUNER_PLUGIN", client("libchunk_tuner.so")}}).outcome;
  INFO(users.err);
  CHECK(count_lines(users.err, "asked 1 chunk 4096") == 1);
}

TEST_CASE("An NCCL that is too old for our plugin keeps the user's", "[nccl]") {
  for (const auto& [version, is_ours] : std::vector<std::pair<std::string, bool>>{
           {"22105", false}, {"2708", false}, {"22203", true}}) {
    INFO(version);
    const Outcome outcome =
        run_recorded({client("nccl_direct"), "variable"},
                     {{"FAKE_NCCL_VERSION", version}, {"NCCL_TUNER_PLUGIN", "own"}})
            .outcome;
    const Lines seen = sees_plugin(outcome.err);
    REQUIRE(seen.size() == 6);
    for (const std::string& line : seen) {
      CHECK(line.ends_with(is_ours ? "libcontextune_preload.so" : "sees plugin own"));
    }
  }
}

TEST_CASE("Without a core NCCL_TUNER_PLUGIN stays as it is", "[nccl]") {
  const Lines seen = sees_plugin(run_preloaded({client("nccl_direct"), "variable"}, {}).err);
  REQUIRE(seen.size() == 6);
  for (const std::string& line : seen) CHECK(line.ends_with("(none)"));
}

TEST_CASE("Threads may make communicators while others read the environment", "[nccl]") {
  const Outcome outcome = run_recorded({client("nccl_direct"), "threads"}).outcome;
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exited_with(0));
  CHECK(outcome.out == "lost 0\nin the end: (none)\n");
}

TEST_CASE("A tool that wraps NCCL too stands where it stood without us", "[nccl]") {
  const std::string tool = client("libnccl_tool.so");
  const std::vector<std::string> command = {client("nccl_direct"), "direct"};
  const Outcome bare = run(command, {{"LD_PRELOAD", tool}});
  INFO(bare.out << bare.err);
  REQUIRE(bare.exited_with(0));
  CHECK(count_lines(bare.out, "tool 1") == 2);
  // Before us: what it looks up next is ours, and the one that it calls with a p is not seen.
  const Recorded before = run_recorded(command, {{"LD_PRELOAD", tool}});
  CHECK(before.outcome.out == bare.out);
  Lines told_of;
  for (const std::string& line : lines_of(before.record)) {
    if (line.starts_with("nccl before ncclAllReduce")) told_of.push_back(line);
  }
  CHECK(told_of.size() == 2);
  // After us.
  const Outcome after =
      run(command, {{"LD_PRELOAD", std::string(CONTEXTUNE_PRELOAD_WITH_CORE) + ":" + tool}});
  INFO(after.out << after.err);
  CHECK(after.out == bare.out);
}

TEST_CASE("A program that is linked with the frontend calls NCCL through it", "[nccl]") {
  const Outcome bare = run({client("nccl_direct"), "direct"});
  const Outcome linked = run({client("nccl_linked"), "direct"});
  INFO(linked.err);
  CHECK(linked.out == bare.out);
  CHECK(sees_plugin(linked.err).front() == "ncclCommInitRank sees plugin libcontextune_preload.so");
}
