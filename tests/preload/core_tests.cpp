// When the core is attached, and what it is told.
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <utility>

#include "catch.hpp"
#include "process.hpp"
#include "tests/scratch_folder.hpp"

using namespace contextune::test;

namespace {

const std::string attach_line = "attach in 1 real cuInit 1 real cuptiSubscribe 0 passed 0 missed 0";

}  // namespace

TEST_CASE("The core is attached once, when cuInit has succeeded", "[core]") {
  const Recorded recorded = run_recorded({client("direct")});
  INFO(recorded.outcome.err << recorded.record);
  CHECK(recorded.outcome.out == run({client("direct")}).out);
  const auto lines = lines_of(recorded.record);
  REQUIRE(lines.size() == 7);
  CHECK(lines[0] == attach_line);
  CHECK(lines[1] == "after cuModuleGetFunction 0 name kernel");
  CHECK(lines[2] == "after cuProfilerStart 0");
  CHECK(lines[3] == "after cuProfilerStop 0");
  CHECK(lines[4] == "before cuStreamSynchronize");
  CHECK(lines[5] == "after cuStreamSynchronize 0");
  CHECK(lines[6] == "exit");
}

TEST_CASE("Launches pass the core by, counted, until it asks for them", "[core]") {
  const Recorded recorded = run_recorded({client("direct"), "100"});
  CHECK(recorded.record.find("launch") == std::string::npos);
  CHECK(count_lines(recorded.outcome.err, "passed 300") == 1);
}

TEST_CASE("An armed core is shown every launch as the program wrote it", "[core]") {
  const Recorded recorded =
      run_recorded({client("direct"), "1"}, {{"CONTEXTUNE_TEST_CORE", "arm"}});
  INFO(recorded.record);
  CHECK(recorded.outcome.out == run({client("direct"), "1"}).out);
  CHECK(count_lines(recorded.record,
                    "launch cuLaunchKernel 0x1234 grid 1 2 3 block 4 5 6 shared 7 stream 0x8 "
                    "extra 0 config 0") == 1);
  CHECK(count_lines(recorded.record,
                    "launch cuLaunchKernelEx 0x1234 grid 7 8 9 block 4 5 6 shared 32 stream 0x9 "
                    "extra 0 config 1") == 1);
  CHECK(count_lines(recorded.record,
                    "launch cuLaunchCooperativeKernel 0x1234 grid 3 2 1 block 6 5 4 shared 0 "
                    "stream (nil) extra 0 config 0") == 1);
  CHECK(count_lines(recorded.outcome.err, "passed 0") == 1);
}

TEST_CASE("An attached core makes every launch of a graph, armed or not", "[core]") {
  for (const char* manner : {"", "arm"}) {
    const Recorded recorded =
        run_recorded({client("direct"), "1", "graph"}, {{"CONTEXTUNE_TEST_CORE", manner}});
    INFO(recorded.record);
    CHECK(recorded.outcome.out == run({client("direct"), "1", "graph"}).out);
    CHECK(recorded.outcome.out.find("graph 0\ncalls 1\n") != std::string::npos);
    CHECK(count_lines(recorded.record, "graph cuGraphLaunch 0x4321 stream 0x8") == 1);
  }
  const Recorded refused =
      run_recorded({client("direct"), "1", "graph"}, {{"CONTEXTUNE_TEST_CORE", "refuse"}});
  CHECK(refused.outcome.out.find("graph 0\ncalls 1\n") != std::string::npos);
  CHECK(refused.record.find("graph ") == std::string::npos);
}

TEST_CASE("CONTEXTUNE_DISABLE leaves the program to itself", "[core]") {
  for (const char* value : {"1", "yes"}) {
    const Recorded recorded = run_recorded({client("direct")}, {{"CONTEXTUNE_DISABLE", value}});
    CHECK(recorded.outcome.out == run({client("direct")}).out);
    CHECK(recorded.record.empty());
  }
  for (const char* value : {"0", ""}) {
    CHECK_FALSE(run_recorded({client("direct")}, {{"CONTEXTUNE_DISABLE", value}}).record.empty());
  }
}

TEST_CASE("A core that declines, or speaks another version, is told nothing", "[core]") {
  for (const char* manner : {"refuse", "version"}) {
    const Recorded recorded = run_recorded({client("direct")}, {{"CONTEXTUNE_TEST_CORE", manner}});
    INFO(manner << ": " << recorded.record);
    CHECK(recorded.outcome.out == run({client("direct")}).out);
    CHECK(lines_of(recorded.record) == std::vector<std::string>{attach_line});
  }
}

TEST_CASE("A driver that does not come up attaches nothing", "[core]") {
  // Every entry of that program fails, cuInit with them.
  const Recorded recorded = run_recorded({client("entries")});
  CHECK(recorded.outcome.exited_with(0));
  CHECK(recorded.record.empty());
}

TEST_CASE("A program that initialised the driver past us attaches at its first launch", "[core]") {
  const Recorded recorded = run_recorded({client("late"), "launch"});
  INFO(recorded.record << recorded.outcome.err);
  CHECK(recorded.outcome.out == run({client("late"), "launch"}).out);
  const auto lines = lines_of(recorded.record);
  REQUIRE_FALSE(lines.empty());
  CHECK(lines[0] == "attach in 1 real cuInit 1 real cuptiSubscribe 0 passed 1 missed 1");
}

TEST_CASE("A core that is attached late is told that it may have missed memory", "[core]") {
  for (const char* way : {"context", "memory"}) {
    const Recorded recorded = run_recorded({client("late"), way});
    INFO(recorded.record);
    CHECK(recorded.outcome.out == run({client("late"), way}).out);
    CHECK(lines_of(recorded.record)[0] ==
          "attach in 1 real cuInit 1 real cuptiSubscribe 0 passed 0 missed 1");
  }
}

TEST_CASE("What is recorded passes the core by until it records, or asks for transfers alone",
          "[core]") {
  struct Shown {
    const char* manner;
    std::size_t events, copies;
  };
  for (const Shown& shown : {Shown{"", 0, 0}, Shown{"recorded", 1, 1}, Shown{"transfers", 0, 1}}) {
    const Recorded recorded =
        run_recorded({client("direct")}, {{"CONTEXTUNE_TEST_CORE", shown.manner}});
    INFO(shown.manner << recorded.record);
    CHECK(recorded.outcome.out == run({client("direct")}).out);
    CHECK(count_lines(recorded.record, "before cuEventRecord") == shown.events);
    CHECK(count_lines(recorded.record, "after cuEventRecord 0") == shown.events);
    CHECK(count_lines(recorded.record, "before cuMemcpyDtoD_v2") == shown.copies);
    CHECK(count_lines(recorded.record, "after cuMemcpyDtoD_v2 0") == shown.copies);
  }
}

TEST_CASE("An attached core makes every load of code, and is told of it afterwards", "[core]") {
  for (const char* manner : {"", "refuse"}) {
    const Recorded recorded = run_recorded(
        {client("keeps_errno")}, {{"CONTEXTUNE_TEST_CORE", manner}, {"FAKE_NCCL_QUIET", "1"}});
    const std::string made = "load cuLibraryLoadData\nafter cuLibraryLoadData 0\n";
    CHECK((recorded.record.find(made) != std::string::npos) == (std::string(manner) != "refuse"));
  }
}

TEST_CASE("No entry point of the frontend changes errno, whatever the core does", "[core]") {
  const std::vector<std::string> command = {client("keeps_errno")};
  const Environment quiet = {{"FAKE_NCCL_QUIET", "1"}};
  const Outcome bare = run(command, quiet);
  INFO(bare.err);
  REQUIRE(bare.exited_with(0));
  REQUIRE(bare.out.find("late cuGraphLaunch: 5 5\n") != std::string::npos);
  REQUIRE(bare.out.find("late cuMemAlloc_v2: 5 5, 77 77\n") != std::string::npos);
  for (const char* manner : {"", "arm", "recorded", "refuse"}) {
    Environment environment = quiet;
    environment["CONTEXTUNE_TEST_CORE"] = manner;
    environment["NVTX_INJECTION64_PATH"] = CONTEXTUNE_PRELOAD_WITH_CORE;
    const Recorded recorded = run_recorded(command, environment);
    INFO(manner << recorded.outcome.err);
    CHECK(lines_of(recorded.outcome.out) == lines_of(bare.out));
    CHECK(recorded.outcome.err.find("at the end: 5") != std::string::npos);
    CHECK(recorded.outcome.exited_with(0));
  }
}

TEST_CASE("A core learns when the other threads have left the driver, however many there were",
          "[core]") {
  // Beyond as many threads as are told apart, and without the system's help.
  for (const auto& [threads, where] :
       {std::pair("0", ""), std::pair("300", ""), std::pair("0", "sandboxed")}) {
    const Recorded recorded = run_recorded({client("calls"), threads, where});
    INFO(recorded.outcome.out << recorded.outcome.err);
    // It was asked for while that cost nothing.
    const std::string barrier = std::strcmp(where, "sandboxed") == 0 ? "barrier -1" : "barrier 0";
    CHECK(count_lines(recorded.outcome.out, barrier) == 1);
    for (const char* entry :
         {"cuLaunchKernel", "cuGraphLaunch", "cuEventRecord", "cuStreamSynchronize"}) {
      for (const char* way : {" passed", " shown"}) {
        CHECK(count_lines(recorded.outcome.out, std::string(entry) + way + ": 0, then 1") == 1);
      }
    }
    CHECK(count_lines(recorded.outcome.out, "own call 1") == 1);
    const int passed = std::stoi(threads) + 1;
    CHECK(count_lines(recorded.outcome.out, "passed " + std::to_string(passed)) == 1);
  }
}

TEST_CASE("A forked child does not call the core", "[core]") {
  const Recorded recorded =
      run_recorded({client("lookup"), "forked"}, {{"CONTEXTUNE_TEST_CORE", "arm"}});
  INFO(recorded.record);
  CHECK(recorded.outcome.out == run({client("lookup"), "forked"}).out);
  CHECK(count_lines(recorded.record, attach_line) == 1);
  std::size_t launches = 0;
  for (const std::string& line : lines_of(recorded.record)) launches += line.starts_with("launch");
  CHECK(launches == 2);  // the parent's, before and after; the child's third is not shown
}

TEST_CASE("A replaced program attaches its own core", "[core]") {
  const Recorded recorded = run_recorded({client("lookup"), "exec"});
  CHECK(count_lines(recorded.record, attach_line) == 2);
}

TEST_CASE("Racing threads attach one core and lose no launch", "[core]") {
  for (int i = 0; i < 20; ++i) {
    const Recorded recorded = run_recorded({client("lookup"), "threads"});
    REQUIRE(recorded.outcome.out == "same 1 calls 16 16000\n");
    std::size_t attached = 0;
    for (const std::string& line : lines_of(recorded.record))
      attached += line.starts_with("attach");
    REQUIRE(attached == 1);
  }
}

TEST_CASE("A core is found by symbol in a program that is linked to one", "[core]") {
  const Recorded recorded = run_recorded({client("with_linked_core")});
  INFO(recorded.outcome.err);
  CHECK(recorded.outcome.out == "init 0\n");
  CHECK(recorded.outcome.err == "the program's own core\n");
  CHECK(recorded.record.empty());
}

TEST_CASE("The frontend works when it is linked instead of preloaded", "[core]") {
  const Outcome plain = run({client("direct")});
  const ScratchFolder folder;
  const std::string record = folder.path("record");
  const Outcome linked = run({client("linked")}, {{"CONTEXTUNE_TEST_RECORD", record},
                                                  {"LD_LIBRARY_PATH", client("with_core")}});
  INFO(linked.err);
  CHECK(linked.out == plain.out);
  CHECK(count_lines(linked.err, "passed 9") == 1);
  CHECK(std::filesystem::exists(record));
}

TEST_CASE("A core is found beside the frontend after the program has changed its folder",
          "[core]") {
  const std::string folder = client("with_core");
  const Recorded absolute = run_recorded({"env", "-C", "/", client("direct")});
  CHECK(absolute.record.starts_with(attach_line));
  const Outcome relative = run({"sh", "-c",
                                "cd '" + folder + "' && LD_PRELOAD=./libcontextune_preload.so '" +
                                    client("late") + "' folder"});
  INFO(relative.err);
  CHECK(count_lines(relative.out, "core attached 1") == 1);
}

TEST_CASE("The core learns of the program's end before the program's handlers run", "[core]") {
  for (const char* manner : {"early", "", "thread", "return"}) {
    INFO(manner);
    const Recorded recorded = run_recorded({client("ends"), manner});
    INFO(recorded.outcome.err << recorded.record);
    const bool is_attached = std::string(manner) != "early";
    CHECK(recorded.outcome.exited_with(7));
    CHECK(recorded.outcome.out == "handler\n");
    CHECK(count_lines(recorded.outcome.err, "last: exit") == (is_attached ? 1 : 0));
    CHECK(count_lines(recorded.record, "exit") == (is_attached ? 1 : 0));
  }
}

TEST_CASE("A program with a sanitizer runs as it does without us", "[core]") {
  for (const char* sanitizer : {"sanitized_address", "sanitized_leak", "sanitized_thread"}) {
    if (!std::filesystem::exists(client(sanitizer))) continue;  // another compiler than GCC
    INFO(sanitizer);
    const Outcome bare = run({client(sanitizer), "thread"});
    REQUIRE(bare.exited_with(7));
    const Recorded recorded = run_recorded({client(sanitizer), "thread"});
    INFO(recorded.outcome.err << recorded.record);
    CHECK(recorded.outcome.exited_with(7));
    CHECK(recorded.outcome.out == bare.out);
    CHECK(count_lines(recorded.record, "exit") == 1);
  }
}
