// dlsym and direct references: pitfalls that other interposers fell into.
#include "catch.hpp"
#include "process.hpp"

using namespace contextune::test;

namespace {

/// The program prints the same with and without the frontend, and ends the same.
Outcome same_when_preloaded(const std::vector<std::string>& command,
                            const Environment& environment = {}) {
  const Outcome bare = run(command, environment);
  const Outcome preloaded = run_preloaded(command, environment);
  INFO("without: " << bare.out << bare.err);
  INFO("with: " << preloaded.out << preloaded.err);
  CHECK(bare.exited_with(0));
  CHECK(preloaded.status == bare.status);
  CHECK(preloaded.out == bare.out);
  return preloaded;
}

std::vector<std::string> lookup(const std::string& way) {
  return {client("lookup"), way};
}

bool all_lines_are(const std::string& text, const std::string& end) {
  const auto lines = lines_of(text);
  for (const std::string& line : lines) {
    INFO(line);
    if (!line.ends_with(end)) return false;
  }
  return !lines.empty();
}

}  // namespace

TEST_CASE("Every entry passes every argument and result on, however it is reached", "[lookup]") {
  const Outcome outcome = same_when_preloaded({client("entries")});
  CHECK(outcome.out.find("DIFFERENT") == std::string::npos);
  CHECK(lines_of(outcome.out).size() > 290);
  CHECK(all_lines_are(outcome.err, "wrapped routed"));
  CHECK(lines_of(outcome.err).size() == lines_of(outcome.out).size());
  // Nothing of the list is wrapped by chance: without the frontend nothing is.
  CHECK(all_lines_are(run({client("entries")}).err, "bare bare"));
}

TEST_CASE("A lookup in the driver's handle gives the wrapper", "[lookup]") {
  const Outcome outcome = same_when_preloaded(lookup("handle"));
  CHECK(all_lines_are(outcome.err, "routed"));
}

TEST_CASE("Lookups in the global scope give the wrapper where the driver is in it", "[lookup]") {
  const Outcome outcome = same_when_preloaded(lookup("default"));
  CHECK(count_lines(outcome.err, "cuInit routed") == 1);
  CHECK(count_lines(outcome.err, "cuLaunchKernel routed") == 1);
  CHECK(count_lines(outcome.err, "cuCtxDestroy_v2 routed") == 1);
  CHECK(count_lines(outcome.err, "cuFuncLoad routed") == 1);
  CHECK(count_lines(outcome.err, "cuFuncGetName routed") == 1);
  CHECK(count_lines(outcome.err, "cuCtxGetCurrent bare") == 1);
}

TEST_CASE("Lookups that would have failed still fail, with the same message", "[lookup]") {
  SECTION("without a driver") {
    same_when_preloaded(lookup("without"));
  }
  SECTION("with a driver out of scope") {
    same_when_preloaded(lookup("out-of-scope"));
  }
}

TEST_CASE("dlerror tells the same story", "[lookup]") {
  same_when_preloaded(lookup("errors"));
}

TEST_CASE("Names that only look like the driver's are left alone", "[lookup]") {
  CHECK(same_when_preloaded(lookup("prefixes")).out == "1 1 1 1 1\n");
}

TEST_CASE("A lookup gives the same pointer a thousand times", "[lookup]") {
  CHECK(same_when_preloaded(lookup("repeat")).out == "same 1\n");
}

TEST_CASE("Another library's function of the same name is not replaced", "[lookup]") {
  CHECK(same_when_preloaded(lookup("foreign"), {{"LD_LIBRARY_PATH", client("")}}).out ==
        "its own 1\n");
}

TEST_CASE("Pointers into a driver that the program has closed stay good", "[lookup]") {
  same_when_preloaded(lookup("closed"));
}

TEST_CASE("Threads that race for the first use all get the same wrapper", "[lookup]") {
  for (int i = 0; i < 20; ++i) {
    const Outcome outcome = run_preloaded(lookup("threads"));
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.exited_with(0));
    REQUIRE(outcome.out == "same 1 calls 16 16000\n");
  }
}

TEST_CASE("A library that asks for the next function of its own name does not find itself",
          "[lookup]") {
  for (const char* program : {"lookup", "lookup_unoptimised"}) {
    const Outcome outcome = same_when_preloaded({client(program), "self-lookup"});
    CHECK(outcome.out == "plugin 11\n");
  }
}

TEST_CASE("Callers that were compiled without optimisation are callers like others", "[lookup]") {
  for (const char* way : {"handle", "default", "errors", "without", "forked"}) {
    same_when_preloaded({client("lookup_unoptimised"), way});
  }
}

TEST_CASE("A plugin with its own driver in its own scope is seen", "[lookup]") {
  const Outcome outcome = same_when_preloaded(lookup("local-plugin"));
  CHECK(count_lines(outcome.err, "plugin routed") == 1);
}

TEST_CASE("A plugin that binds to its own libraries first runs untouched", "[lookup]") {
  const Outcome outcome = same_when_preloaded(lookup("deepbind"));
  CHECK(count_lines(outcome.err, "plugin bare") == 1);
}

TEST_CASE("The driver can be brought up in a constructor", "[lookup]") {
  CHECK(same_when_preloaded(lookup("constructor")).out == "plugin 0\n");
}

TEST_CASE("A forked child and a replaced program work on", "[lookup]") {
  same_when_preloaded(lookup("forked"));
  const Outcome outcome = same_when_preloaded(lookup("exec"));
  CHECK(lines_of(outcome.err).size() == 4);
  CHECK(all_lines_are(outcome.err, "routed"));
}

TEST_CASE("Another interposer keeps its place, before or after the frontend", "[lookup]") {
  const std::string other = client("libinterposer.so");
  const Outcome bare = run({client("direct")}, {{"LD_PRELOAD", other}});
  REQUIRE(bare.exited_with(0));
  REQUIRE(bare.out.find("tracer cuInit, next found") != std::string::npos);
  REQUIRE(bare.out.find("tracer cuFuncLoad, next found\nload 17\n") != std::string::npos);
  const Outcome before = run_preloaded({client("direct")}, {{"LD_PRELOAD", other}});
  const Outcome after = run({client("direct")},
                            {{"LD_PRELOAD", std::string(CONTEXTUNE_PRELOAD_ALONE) + ":" + other}});
  INFO(before.out << before.err << after.out << after.err);
  CHECK(before.out == bare.out);
  CHECK(after.out == bare.out);
}

TEST_CASE("A second interposer of dlsym works on, before or after the frontend", "[lookup]") {
  const std::string other = client("libsecond_dlsym.so");
  const Outcome bare = run(lookup("handle"), {{"LD_PRELOAD", other}});
  REQUIRE(count_lines(bare.err, "second dlsym saw fake_calls") == 1);
  const Outcome before = run_preloaded(lookup("handle"), {{"LD_PRELOAD", other}});
  const Outcome after =
      run(lookup("handle"), {{"LD_PRELOAD", std::string(CONTEXTUNE_PRELOAD_ALONE) + ":" + other}});
  for (const Outcome& outcome : {before, after}) {
    INFO(outcome.out << outcome.err);
    CHECK(outcome.out == bare.out);
    CHECK(count_lines(outcome.err, "cuInit routed") == 1);
    CHECK(count_lines(outcome.err, "second dlsym saw fake_calls") == 1);
  }
}

TEST_CASE("A tracer that the program links before the driver keeps its place, and is observed",
          "[lookup]") {
  same_when_preloaded({client("traced")});
  const Recorded recorded = run_recorded({client("traced")});
  CHECK(count_lines(recorded.record, "after cuStreamSynchronize 0") == 1);
}

TEST_CASE("A program that asks whether there is a driver gets the same answer", "[lookup]") {
  CHECK(same_when_preloaded({client("weak_reference")}).out == "no driver\n");
  CHECK(same_when_preloaded({client("weak_reference")}, {{"LD_PRELOAD", client("libcuda.so.1")}})
            .out == "driver\n");
}

TEST_CASE("A destructor that runs after main can call the driver", "[lookup]") {
  same_when_preloaded({client("static_destructor")});
  CHECK(run_recorded({client("static_destructor")}).outcome.exited_with(0));
}

TEST_CASE("Symbols are bound early under LD_BIND_NOW as they are bound late", "[lookup]") {
  same_when_preloaded({client("direct")}, {{"LD_BIND_NOW", "1"}});
}

TEST_CASE("Python's ctypes reaches the wrapper", "[lookup]") {
  if (!installed("python3")) {
    WARN("skipped: python3 is not installed");
    return;
  }
  const std::string script =
      "import ctypes\n"
      "driver = ctypes.CDLL('libcuda.so.1')\n"
      "print(driver.cuInit(0), driver.fake_calls(b'cuInit'))\n"
      "try:\n"
      "    driver.cuNoSuchThing\n"
      "except AttributeError as error:\n"
      "    print(error)\n"
      "try:\n"
      "    ctypes.CDLL(None).cuInit\n"
      "except AttributeError as error:\n"
      "    print(error)\n"
      "print(ctypes.CDLL(None).getpid() > 0)\n";
  const Environment environment = {{"LD_LIBRARY_PATH", client("")}};
  same_when_preloaded({"python3", "-c", script}, environment);
  const Recorded recorded = run_recorded({"python3", "-c", script}, environment);
  CHECK(recorded.record.find("attach") == 0);
}
