#include <string>
#include <string_view>
#include <vector>

#include "fixture.hpp"

using namespace contextune;

TEST_CASE("In process mode every site counts its own launches", "[mode]") {
  Program program(Program::quick(&Options::region, "process", &Options::confirm, true));
  program.runtime().declare(blocks({32, 1024}));
  program.runtime().declare(blocks({32}, "add_twin"));
  CHECK(program.armed == 1);
  Adder often(1 << 16);
  Adder seldom(1 << 16, "_Z8add_twinifPf");
  for (int i = 0; i < 200; ++i) {
    often.run(program, 1, 128);
    if (i % 40 == 0) seldom.run(program, 1, 128);
    program.synchronise();
  }
  CHECK(program.said("winner", {"site=add ", "config=2", "block=1024"}));
  CHECK(program.said("confirm", {"region=process", "verdict=kept"}));
  CHECK(program.said("trial", {"site=add_twin", "pass=1"}));
  const auto seen = take_seen();
  CHECK(seen.back().block == 1024);
  often.holds(200);
  seldom.holds(5);
  program.end();
  CHECK(program.said("summary", {"region=process", "sites=2", "tuned=1"}));
}

TEST_CASE("Launches of marked regions are not the process's", "[mode]") {
  Program program(Program::quick(&Options::region, "process;nvtx:step"));
  program.runtime().declare(blocks({64}));
  Adder adder(100);
  program.steps(3, [&] { adder.run(program); });
  CHECK(program.said("site", {"region=step"}));
  CHECK_FALSE(program.said("site", {"region=process"}));
  adder.run(program);
  CHECK(program.said("site", {"region=process"}));
}

TEST_CASE("A kernel can begin each entry", "[mode]") {
  Program program(Program::quick(&Options::region, "kernel:^other$"));
  program.runtime().declare(blocks({64, 256}));
  Adder adder(1000);
  const CUfunction other = Simulation::get().function(Simulation::get().module, "_Z5otherv");
  adder.run(program);  // before the first period
  for (int i = 0; i < 8; ++i) {
    program.launch(other, 1, 32, {});
    adder.run(program);
    adder.run(program);
    program.synchronise();
  }
  CHECK(program.said("trial", {"pass=0", "launches=2", "region=kernel:^other$"}));
  CHECK(program.said("trial", {"pass=2", "launches=2", "block=256"}));
  CHECK(program.said("winner", {"region=kernel:^other$"}));
  adder.holds(17);
}

TEST_CASE("The profiler's start and stop mark a region", "[mode]") {
  Program program(Program::quick(&Options::region, "profiler"));
  program.runtime().declare(blocks({64, 256}));
  Adder adder(1000);
  program.process().regions().profiler(false);  // a stop without a start
  for (int i = 0; i < 6; ++i) {
    program.process().regions().profiler(true);
    CHECK(program.armed == 1);
    adder.run(program);
    program.process().regions().profiler(false);
    CHECK(program.armed == 0);
    program.synchronise();
  }
  CHECK(program.said("winner", {"region=profiler"}));
}

TEST_CASE("Single launches are timed by CUPTI where it is left to us", "[mode]") {
  Options options = Program::quick();
  options.timer = TimerKind::Auto;
  {
    Program program(options);
    program.runtime().declare(blocks({32, 1024}));
    Adder adder(1 << 16);
    // How often CUPTI is asked depends on the time that it takes.
    for (int i = 0; i < 2000 && !program.runtime().region("step", {}).finished(); ++i) {
      program.steps(1, [&] { adder.run(program, 1, 128); });
    }
    // CUPTI leaves where the region begins again.
    program.steps(1, [&] { adder.run(program, 1, 128); });
    CHECK(program.said("trial", {"timer=cupti", "time_us="}));
    CHECK(program.said("winner", {"config=2"}));
  }
#ifndef __SANITIZE_THREAD__  // its own thread keeps the first program's CUPTI from being released
  SECTION("and by events once the program uses it itself") {
    Program program(options);
    program.runtime().declare(blocks({32, 512, 1024}));
    Adder adder(1 << 16);
    program.steps(2, [&] { adder.run(program, 1, 128); });
    program.process().program_uses_cupti("cuptiSubscribe");
    program.steps(12, [&] { adder.run(program, 1, 128); });
    CHECK(program.said("fallback", {"reason=program_uses_cupti", "cuptiSubscribe"}));
    CHECK(program.said("trial", {"timer=events"}));
    CHECK(program.said("winner", {"config=3", "block=1024"}));
    adder.holds(14);
  }
#endif
}

TEST_CASE("Entries that follow each other without a wait are tuned as well", "[mode]") {
  Program program(Program::quick(&Options::confirm, true));
  program.runtime().declare(blocks({32, 1024}));
  Adder adder(1 << 16);
  for (int i = 0; i < 400; ++i) {
    program.push("step");
    adder.run(program, 1, 128);
    program.pop();
    if (i % 16 == 15) program.synchronise();
  }
  CHECK(program.said("confirm", {"verdict=kept"}));
  CHECK(program.said("winner", {"config=2"}));
  program.synchronise();
  adder.holds(400);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// One gives no address out again, the other takes 0.7 ms for a launch.

TEST_CASE("One entry may make more launches than are noted at once", "[mode]") {
  Program program(Program::quick(&Options::timer, TimerKind::Auto, &Options::n_warmup, 0,
                                 &Options::n_repeat, 1));
  program.runtime().declare(blocks({1024}));
  Adder adder(1 << 10);
  adder.x = program.allocate(sizeof(float) << 10U);
  constexpr int launches = 4500;
  for (int i = 0; i < 20 && !program.runtime().region("step", {}).finished(); ++i)
    program.steps(1, [&] {
      for (int k = 0; k < launches; ++k) adder.run(program, 1, 32);
    });
  // By CUPTI, unless an earlier program here could not let it go.
  CHECK(program.said("trial", {"config=1", "launches=4500"}));
  CHECK(program.said("winner", {"config=1"}));
}

/// Destroys a stream, and makes another with its handle. False: it has got another one.
bool replace_stream(Program& program, CUstream& stream) {
  const gpu::Driver& driver = Simulation::get().driver;
  const CUstream first = stream;
  program.process().handles().stream_goes_away(stream);
  REQUIRE(driver.cuStreamDestroy(stream) == CUDA_SUCCESS);
  // Another thread may have taken its memory meanwhile, and give it back.
  std::vector<CUstream> others;
  for (stream = nullptr; stream != first && others.size() < 64; others.push_back(stream))
    REQUIRE(driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  others.pop_back();
  for (const CUstream other : others) REQUIRE(driver.cuStreamDestroy(other) == CUDA_SUCCESS);
  return stream == first;
}

TEST_CASE("Work on a stream that has got another's handle counts for the region", "[mode]") {
  Program program(Program::quick(&Options::confirm, true));
  program.runtime().declare(blocks({32, 1024}));
  Adder small(1 << 10);
  Adder large(1 << 20);
  const gpu::Driver& driver = Simulation::get().driver;
  int reused = 0;
  program.steps(100, [&] {
    CUstream stream = nullptr;
    REQUIRE(driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    small.run(program, 8, 128, 0, stream);
    if (replace_stream(program, stream)) ++reused;
    large.run(program, 8, 128, 0, stream);
    program.process().handles().stream_goes_away(stream);
    REQUIRE(driver.cuStreamDestroy(stream) == CUDA_SUCCESS);
  });
  REQUIRE(reused > 50);
  CHECK(program.said("confirm", {"verdict=kept"}));
  CHECK(program.said("winner", {"block=1024"}));
}

TEST_CASE("Work on a stream that has got another's handle counts for a call timed as a whole",
          "[mode]") {
  Program program;
  Options options = Program::quick();
  options.mode = Mode::Body;
  intercept::Region& region = program.runtime().region("step", options);
  region.time_rows();
  intercept::TunableSpec spec;
  spec.name = "sum";
  spec.configs = values_of("kind", {0, 1});
  spec.timed_as_span = true;
  intercept::Site* const site = region.tunable(spec);
  Adder small(1 << 10);
  Adder medium(1 << 18);
  Adder large(1 << 20);
  const gpu::Driver& driver = Simulation::get().driver;
  int reused = 0;
  int passes = 0;
  for (; region.begin_pass(); ++passes) {
    CUstream stream = nullptr;
    REQUIRE(driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    intercept::TunableCall call(site);
    small.run(program, 8, 128, 0, stream);
    if (replace_stream(program, stream)) ++reused;
    (call.config() == 0 ? large : medium).run(program, 8, 128, 0, stream);
    call.end(true);
    region.end_pass();
    program.process().handles().stream_goes_away(stream);
    REQUIRE(driver.cuStreamDestroy(stream) == CUDA_SUCCESS);
  }
  REQUIRE(reused == passes);
  const std::vector<std::string> trials = program.lines("trial");
  REQUIRE(trials.size() == 2);
  const auto microseconds = [](const std::string& line) {
    constexpr std::string_view name = " time_us=";
    return std::stod(line.substr(line.find(name) + name.size()));
  };
  CHECK(microseconds(trials[0]) > 2 * microseconds(trials[1]));
  CHECK(program.said("trial", {"timer=events"}));
}

#endif

TEST_CASE("Between the passes of a body the L2 cache can be flushed", "[mode]") {
  // The default's last sample, as the log has it: all of it was in the cache, or none.
  const auto default_us = [](bool flush) {
    Program program;
    program.runtime().declare(blocks({64}));
    Adder adder(1 << 16);
    Options body = Program::quick();
    body.mode = Mode::Body;
    body.n_repeat = 2;
    body.flush_l2 = flush;
    auto& region = program.runtime().region("step", body);
    while (region.begin_pass()) {
      adder.run(program);
      region.end_pass();
    }
    for (const std::string& line : program.lines("trial")) {
      if (line.find(" config=0 ") == std::string::npos ||
          line.find(" iter=1 ") == std::string::npos)
        continue;
      return std::stod(line.substr(line.find("time_us=") + 8));
    }
    return 0.0;
  };
  const double warm = default_us(false);
  REQUIRE(warm > 0);
  CHECK(default_us(true) > 1.1 * warm);

  Options live = Program::quick();
  live.flush_l2 = true;
  Program program(live);
  program.steps(1, [] {});
  CHECK(program.said("fault", {"flush_l2 does nothing", "step"}));
}

TEST_CASE("A space file that cannot be used is named and leaves the program alone", "[mode]") {
  Program program(Program::quick(&Options::space, "/no/such/space.lua"));
  CHECK(program.said("fault", {"/no/such/space.lua"}));
  CHECK(program.said("fallback", {"reason=space_file"}));
  Adder adder(100);
  program.steps(3, [&] { adder.run(program); });
  adder.holds(3);
}
