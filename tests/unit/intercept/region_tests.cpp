#include "fixture.hpp"

using namespace contextune;

namespace {

/// Blocks that `kernel` ran with since the last call, in order.
std::vector<unsigned> blocks_seen(const std::string& kernel) {
  std::vector<unsigned> blocks;
  for (const SeenLaunch& one : take_seen()) {
    if (one.kernel == kernel) blocks.push_back(one.block);
  }
  return blocks;
}

}  // namespace

TEST_CASE("All sites advance in every pass, as the table says", "[region]") {
  Program program(Program::quick(&Options::n_repeat, 2));
  program.runtime().declare(blocks({64}));
  program.runtime().declare(blocks({64, 256}, "add_twin"));
  Adder first(1000);
  Adder second(1000, "_Z8add_twinifPf");
  program.steps(7, [&] {
    first.run(program);
    second.run(program);
  });
  std::vector<unsigned> add;
  std::vector<unsigned> twin;
  for (const SeenLaunch& one : take_seen()) {
    (one.kernel == "add" ? add : twin).push_back(one.block);
  }
  CHECK(std::vector<unsigned>(add.begin(), add.begin() + 4) ==
        std::vector<unsigned>{128, 128, 64, 64});
  CHECK(add[4] == add[5]);
  CHECK(std::vector<unsigned>(twin.begin(), twin.begin() + 6) ==
        std::vector<unsigned>{128, 128, 64, 64, 256, 256});
  first.holds(7);
  second.holds(7);
  CHECK(program.lines("trial").size() == 10);
  CHECK(program.said("trial", {"pass=3", "site=add ", "config=1", "block=64", "iter=1"}));
  CHECK(program.said("site", {"site=add_twin", "configs=3", "provider=declared"}));
}

TEST_CASE("Winners stay when the search is over, and entries are no longer passes", "[region]") {
  Program program;
  program.runtime().declare(blocks({32, 1024}));
  Adder adder(1 << 16);
  program.steps(20, [&] { adder.run(program, 1, 128); });
  REQUIRE(program.said("winner", {"site=add "}));
  const auto blocks = blocks_seen("add");
  REQUIRE(blocks.size() == 20);
  // One block of 1024 threads is the fastest way here.
  for (std::size_t i = 5; i < 20; ++i) CHECK(blocks[i] == 1024);
  CHECK(program.said("winner", {"config=2", "block=1024", "simulated=yes"}));
  CHECK(program.runtime().region("step", {}).finished());
  adder.holds(20);
}

TEST_CASE("Refine and confirm end in a verdict, and the program's results stay", "[region]") {
  Options options = Program::quick();
  options.n_warmup = 1;
  options.n_repeat = 2;
  options.refine = options.confirm = true;
  options.margin = 0.01;
  Program program(options);
  program.runtime().declare(blocks({32, 512, 1024}));
  program.runtime().declare(blocks({32, 1024}, "add_twin"));
  Adder first(1 << 18);
  Adder second(1 << 18, "_Z8add_twinifPf");
  program.steps(150, [&] {
    first.run(program, 4, 64);
    second.run(program, 4, 64);
  });
  CHECK(program.said("confirm", {"verdict=kept", "region=step", "simulated=yes"}));
  CHECK(program.said("stage", {"stage=finished"}));
  CHECK(program.said("summary", {"region=step", "stage=finished", "sites=2"}));
  first.holds(150);
  second.holds(150);
}

TEST_CASE("A launch belongs to the innermost region of its thread", "[region]") {
  Program program(Program::quick(&Options::region, "nvtx:outer;nvtx:inner"));
  program.runtime().declare(blocks({64, 256}));
  Adder adder(1000);
  for (int i = 0; i < 6; ++i) {
    program.push("outer");
    adder.run(program);
    program.push("inner");
    adder.run(program);
    adder.run(program);
    program.pop();
    program.pop();
    program.synchronise();
  }
  CHECK(program.said("trial", {"region=outer", "launches=1"}));
  CHECK(program.said("trial", {"region=inner", "launches=2"}));
  CHECK(program.said("winner", {"region=outer"}));
  CHECK(program.said("winner", {"region=inner"}));
  adder.holds(18);
}

TEST_CASE("A region entered from inside itself is one entry", "[region]") {
  Program program;
  program.runtime().declare(blocks({64}));
  Adder adder(1000);
  program.steps(4, [&] {
    adder.run(program);
    program.push("step");
    adder.run(program);
    program.pop();
    adder.run(program);
  });
  CHECK(program.said("trial", {"launches=3"}));
  CHECK_FALSE(program.said("trial", {"launches=1"}));
  CHECK(program.said("fallback", {"reason=nested_region"}));
}

TEST_CASE("Launches outside of regions are not shown, and run as written", "[region]") {
  Program program;
  program.runtime().declare(blocks({64}));
  Adder adder(1000);
  CHECK(program.armed == 0);
  adder.run(program);
  program.push("something else");
  CHECK(program.armed == 0);
  program.push("step");
  CHECK(program.armed == 1);
  program.pop();
  CHECK(program.armed == 0);
  program.pop();
  program.pop();  // one too many
  CHECK(program.armed == 0);
  program.synchronise();
  CHECK(blocks_seen("add") == std::vector<unsigned>{128});
}

TEST_CASE("Ranges of the process may begin and end on different threads' behalf", "[region]") {
  Program program;
  program.runtime().declare(blocks({64, 256}));
  Adder adder(1000);
  for (std::uint64_t id = 1; id < 6; ++id) {
    program.process().regions().range(contextune_range_start, "", "step", id);
    adder.run(program);
    program.process().regions().range(contextune_range_end, "", nullptr, id);
    program.synchronise();
  }
  program.process().regions().range(contextune_range_end, "", nullptr, 99);
  CHECK(program.said("winner", {"region=step"}));
  CHECK(program.armed == 0);
  adder.holds(5);
}

TEST_CASE("A region whose first entry never ends is said so at the end", "[region]") {
  Program program(Program::quick(&Options::region, "nvtx:step;profiler;kernel:^add_twin$"));
  Adder adder(1000);
  Adder twin(1000, "_Z8add_twinifPf");
  const bool ends = GENERATE(false, true);
  program.push("step");
  adder.run(program);
  if (ends) program.pop();
  program.process().regions().profiler(true);
  if (ends) program.process().regions().profiler(false);
  for (int i = 0; i < (ends ? 2 : 1); ++i) twin.run(program);
  if (ends) program.push("step");
  program.end();
  for (const char* region : {"step", "profiler", "kernel:^add_twin$"}) {
    INFO(region);
    CHECK(program.said("fallback", {"reason=region_never_left", std::string("region=") + region}) ==
          !ends);
  }
  CHECK_FALSE(program.said("fallback", {"reason=region_never_entered"}));
  program.pop();  // this thread runs other tests
}

TEST_CASE("A region that is never entered is said so at the end", "[region]") {
  Program program(Program::quick(&Options::region, "nvtx:nowhere"));
  SECTION("with the ranges that there are") {
    for (const char* name : {"step", "decode", "step"}) {
      program.push(name, name == std::string("decode") ? "engine" : "");
      program.pop(name == std::string("decode") ? "engine" : "");
    }
    program.process().regions().range(contextune_range_start, "", "prefill", 1);
    program.process().regions().range(contextune_range_end, "", nullptr, 1);
    program.end();
    CHECK(program.said("fallback", {"reason=region_never_entered", "region=nowhere",
                                    "that were seen: engine@decode, prefill, step."}));
  }
  SECTION("those that are regions themselves among them") {
    Options both = Program::quick();
    both.region = "nvtx:step;nvtx:engine@decode;nvtx:step_";
    Program other(both);
    other.push("step");
    other.pop();
    other.push("decode", "engine");
    other.pop("engine");
    other.end();
    CHECK(other.said("fallback", {"reason=region_never_entered", "region=step_",
                                  "that were seen: engine@decode, step."}));
  }
  SECTION("which may be none") {
    program.end();
    CHECK(program.said("fallback", {"reason=region_never_entered", "No NVTX range was seen"}));
  }
  SECTION("and not all where a program has very many") {
    for (int i = 0; i < 5000; ++i) {
      program.push(("range " + std::to_string(i)).c_str());
      program.pop();
    }
    program.end();
    CHECK(program.said("fallback", {"range 0, range 1, range 10, ", "range 9."}));
  }
}

TEST_CASE("A region without anything to tune settles by itself", "[region]") {
  Program program;
  Adder adder(1000);
  program.steps(100, [&] { adder.run(program); });
  CHECK(program.runtime().region("step", {}).finished());
  CHECK(program.lines("site").empty());
  adder.holds(100);
}

TEST_CASE("From exit on everything passes through", "[region]") {
  Program program;
  program.runtime().declare(blocks({64}));
  Adder adder(1000);
  program.push("step");
  adder.run(program);
  program.end();
  CHECK(program.armed == 0);
  adder.run(program);
  program.pop();
  CHECK(program.said("summary", {"launches_outside="}));
  program.push("step");
  adder.run(program);
  program.pop();
  adder.holds(3);
}

TEST_CASE("Contexts that go away by the thousand leave a few summary lines", "[region]") {
  Options options = Program::quick();
  options.n_repeat = 200;  // so that a summary has something new to say each time
  Program program(options);
  program.runtime().declare(blocks({64}));
  Adder adder(1000);
  const auto context = [](std::uintptr_t i) { return reinterpret_cast<CUcontext>(i * 0x10); };
  for (std::uintptr_t i = 1; i <= 100; ++i) {
    program.steps(1, [&] { adder.run(program); });
    program.process().handles().context_goes_away(context(i), true);
    if (i == 1) CHECK(program.lines("summary").size() == 1);
  }
  CHECK(program.lines("summary").size() == 7);  // at 1, 2, 4 and so on
  program.steps(1, [&] { adder.run(program); });
  program.end();
  CHECK(program.lines("summary").size() <= 9);  // two of the end
}

TEST_CASE("exit() from a handler that interrupted us writes nothing and takes no lock",
          "[region]") {
  Program program;
  program.steps(1, [] {});
  Program::depth = 1;
  program.end();
  Program::depth = 0;
  CHECK(program.lines("summary").empty());
  CHECK(program.runtime().region("step", {}).finished());
}
