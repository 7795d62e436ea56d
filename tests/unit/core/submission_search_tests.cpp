#include "core/submission_search.hpp"

#include "catch.hpp"
#include "simulated_program.hpp"

using namespace contextune;

TEST_CASE("A program that gains by both is settled with both", "[submission]") {
  SimulatedProgram program;
  program.ratio = [](const Submission& submission) {
    return (submission.chained ? 0.9 : 1) * (submission.gathered != 0 ? 0.8 : 1);
  };
  const SimulatedRun run = run_program(program, 1);
  CHECK(run.state.verdict.settled);
  CHECK(run.state.verdict.winner.chained);
  CHECK(run.state.verdict.winner.gathered != 0);
  CHECK(run.state.verdict.gain == Approx(0.28).margin(0.02));
  CHECK(run.settled_at < 150);
}

TEST_CASE("A program that gains by neither stays as written", "[submission]") {
  SimulatedProgram program;
  const SimulatedRun run = run_program(program, 1);
  CHECK(run.state.verdict.settled);
  CHECK(run.state.verdict.winner.is_as_written());
}
