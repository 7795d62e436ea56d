// The frontend over the simulated driver, which behaves like a real one where the fake does not.
#include "catch.hpp"
#include "process.hpp"

using namespace contextune::test;

TEST_CASE("A driver-API program computes the same on the simulated driver", "[simulated]") {
  const Outcome bare = run({client("simulated")});
  INFO(bare.out << bare.err);
  REQUIRE(bare.exited_with(0));
  REQUIRE(bare.out.find("values 10 10") != std::string::npos);
  CHECK(run_preloaded({client("simulated")}) == bare);

  const Recorded recorded = run_recorded({client("simulated")}, {{"CONTEXTUNE_TEST_CORE", "arm"}});
  INFO(recorded.record);
  CHECK(recorded.outcome == bare);
  std::size_t launches = 0;
  for (const std::string& line : lines_of(recorded.record)) {
    launches += line.starts_with("launch cuLaunchKernel ");
  }
  CHECK(launches == 11);
  CHECK(count_lines(recorded.record, "load cuModuleLoadData") == 1);
  CHECK(count_lines(recorded.record, "after cuModuleLoadData 0") == 1);
  CHECK(count_lines(recorded.record, "after cuModuleGetFunction 0 name increment") == 1);
  CHECK(count_lines(recorded.record, "before cuModuleUnload") == 1);
}

TEST_CASE("What a launch pays for the frontend can be measured", "[simulated]") {
  const Outcome outcome = run({CONTEXTUNE_LAUNCH_OVERHEAD, "--frontend", CONTEXTUNE_PRELOAD_ALONE,
                               "--case", "no core", "--batches", "200", "--launches", "200"},
                              {{"LD_LIBRARY_PATH", CONTEXTUNE_SIMCUDA_FOLDER}});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exited_with(0));
  CHECK(outcome.out.find("simulated driver") != std::string::npos);
}
