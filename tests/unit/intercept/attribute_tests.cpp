#include "fixture.hpp"

using namespace contextune;

namespace {

Options with_auto() {
  Options options = Program::quick();
  options.auto_knobs.attributes = true;
  return options;
}

}  // namespace

TEST_CASE("Kernels without a declaration are sites only with --auto", "[attributes]") {
  Adder adder(1000);
  {
    Program program;
    program.steps(3, [&] { adder.run(program); });
    CHECK(program.lines("site").empty());
  }
  Program program(with_auto());
  program.steps(30, [&] { adder.run(program); });
  CHECK(program.said("site", {"site=add ", "provider=attributes"}));
  CHECK(program.said("trial", {"carveout=50"}));
  CHECK(program.said("winner", {"site=add "}));
  adder.holds(33);
}

TEST_CASE("A carve-out that the program has set itself is left alone", "[attributes]") {
  Program program(with_auto());
  Adder adder(1000);
  program.process().services().attributes.set(adder.function,
                                              CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
  program.steps(30, [&] { adder.run(program); });
  CHECK_FALSE(program.said("trial", {"carveout="}));
}

TEST_CASE("Blocks that were resident together stay so", "[attributes]") {
  Adder adder(1000);
  SECTION("a grid that fills the device many times may run fewer blocks at a time") {
    Program program(with_auto());
    program.steps(2, [&] { adder.run(program, 132 * 64, 128); });
    program.steps(30, [&] { adder.run(program, 132 * 64, 128); });
    bool fewer = false;
    for (const SeenLaunch& one : take_seen()) fewer = fewer || one.shared_bytes > 0;
    CHECK(fewer);
  }
  SECTION("a grid that just fits may not") {
    Program program(with_auto());
    program.steps(30, [&] { adder.run(program, 132 * 16, 128); });
    for (const SeenLaunch& one : take_seen()) CHECK(one.shared_bytes == 0);
  }
}

TEST_CASE("A declaration goes before the safe attributes", "[attributes]") {
  Program program(with_auto());
  program.runtime().declare(blocks({64}));
  Adder adder(1000);
  program.steps(4, [&] { adder.run(program); });
  CHECK(program.said("site", {"configs=2", "provider=declared"}));
}

TEST_CASE("Dynamic shared memory beyond 48 KiB is allowed for the variant", "[attributes]") {
  Program program;
  auto rule = std::make_shared<TestRule>("add");
  rule->list = values_of("shared_bytes", {100 << 10, 1 << 20});
  program.runtime().declare(rule);
  Adder adder(1000);
  program.steps(5, [&] { CHECK(adder.run(program) == CUDA_SUCCESS); });
  bool used = false;
  for (const SeenLaunch& one : take_seen()) used = used || one.shared_bytes == 100 << 10;
  CHECK(used);
  CHECK(
      program.said("fallback", {"reason=build_failed", "1048576 bytes of dynamic shared memory"}));
  adder.holds(5);
}
