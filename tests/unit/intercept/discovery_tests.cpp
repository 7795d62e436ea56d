#include "fixture.hpp"

using namespace contextune;

TEST_CASE("Discovery lists what each kernel took and changes nothing", "[discovery]") {
  Program program(Program::quick(&Options::discover, true));
  program.runtime().declare(blocks({64}));
  Adder adder(1 << 16);
  program.steps(10, [&] {
    adder.run(program, 8, 128);
    adder.run(program, 8, 128);
    adder.run(program, 16, 256);
  });
  program.end();
  for (const SeenLaunch& one : take_seen()) CHECK((one.block == 128 || one.block == 256));
  CHECK(program.lines("trial").empty());
  CHECK(program.said("kernel", {"kernel=add ", "launches=20", "grid=8 ", "block=128",
                                "params=\"i32 f32 ptr\"", "registers=", "simulated=yes"}));
  CHECK(program.said("kernel", {"kernel=add ", "launches=10", "grid=16 "}));
  CHECK_FALSE(program.said("kernel", {"time_s=0 "}));
  adder.holds(30);
}

TEST_CASE("Discovery of a whole process needs no marks", "[discovery]") {
  Program program(Program::quick(&Options::discover, true, &Options::region, "process"));
  Adder adder(1000);
  for (int i = 0; i < 5; ++i) adder.run(program);
  program.synchronise();
  program.end();
  CHECK(program.said("kernel", {"region=process", "kernel=add ", "launches=5"}));
}

TEST_CASE("Discovery times the launches of a program that never synchronises", "[discovery]") {
  Program program(Program::quick(&Options::discover, true, &Options::region, "process"));
  Adder adder(1000);
  for (int i = 0; i < 4500; ++i) adder.run(program);
  program.end();
  REQUIRE(program.said("kernel", {"region=process", "kernel=add ", "launches=4500"}));
  CHECK_FALSE(program.said("kernel", {"time_s=0 "}));
}
