// A marked region of a program, recorded and repeated by itself.
#include "fixture.hpp"

using namespace contextune;

namespace {

Options replayed() {
  Options options = Program::quick();
  options.mode = Mode::Auto;
  return options;
}

/// x[i] += value in place, on memory that the program is known to have.
struct Accumulator {
  Accumulator(Program& in, int elements, const char* kernel = "_Z3addifPf")
      : program(in),
        n(elements),
        x(in.allocate(static_cast<std::size_t>(elements) * sizeof(float))),
        function(Simulation::get().function(Simulation::get().module, kernel)) {}

  void run(unsigned block = 128, CUstream stream = nullptr) {
    CHECK(program.launch(function, 8, block, {&n, &value, &x}, 0, stream) == CUDA_SUCCESS);
  }
  void holds(float expected) const {
    for (const float one : Simulation::get().floats(x, static_cast<std::size_t>(n))) {
      REQUIRE(one == expected);
    }
  }

  Program& program;
  int n;
  float value = 1;
  CUdeviceptr x;
  CUfunction function;
};

}  // namespace

TEST_CASE("A region is tuned in one visit, and its memory is as after one visit", "[replay]") {
  Program program(replayed());
  program.runtime().declare(blocks({64, 128, 256, 512}));
  Accumulator first(program, 40'000);
  Accumulator second(program, 17);
  program.steps(1, [&] {
    first.run();
    second.run();
    first.run();
  });
  first.holds(2);
  second.holds(1);
  CHECK(program.said("winner", {"site=add"}));
  CHECK(program.said("replay", {"region=step", "visit=1", "operations=3"}));
  CHECK(program.lines("fallback").empty());
  CHECK(program.recording == 0);
  // Later visits run the winners, once.
  (void)take_seen();
  program.steps(1, [&] { first.run(); });
  CHECK(take_seen().size() == 1);
  first.holds(3);
}

TEST_CASE("A config that writes elsewhere is found and never wins", "[replay]") {
  Program program(replayed());
  program.runtime().declare(blocks({64, 32, 256}, "add_by_block"));
  Accumulator adder(program, 1000, "_Z12add_by_blockifPf");
  // The wrong config writes one element more, which the region itself never touches.
  adder.n = 999;
  program.steps(1, [&] { adder.run(); });
  for (const auto& l : program.lines("fallback")) UNSCOPED_INFO(l);
  for (const auto& l : program.lines("site")) UNSCOPED_INFO(l);
  for (const auto& l : program.lines("trial")) UNSCOPED_INFO(l);
  CHECK(Simulation::get().floats(adder.x, 1000).at(999) == 0);
  adder.holds(1);
  CHECK(program.said("fallback", {"reason=wrong_result", "site=add_by_block", "block=64"}));
  CHECK(program.lines("fallback").size() == 1);
  CHECK(program.said("trial", {"config=1", "status=wrong_result"}));
  CHECK_FALSE(program.said("winner", {"block=64"}));
}
