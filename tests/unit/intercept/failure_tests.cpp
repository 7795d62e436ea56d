#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "fixture.hpp"

using namespace contextune;

TEST_CASE("A config that cannot launch is launched again as written, at once", "[failure]") {
  const int failing = GENERATE(64, 256, 512);
  Program program;
  program.runtime().declare(blocks({64, 256, 512}));
  Simulation::get().fault("launch_fail:_Z3addifPf:block=" + std::to_string(failing));
  Adder adder(1000);
  program.steps(10, [&] { CHECK(adder.run(program) == CUDA_SUCCESS); });
  adder.holds(10);
  CHECK(program.said("trial", {"block=" + std::to_string(failing), "status=failed"}));
  CHECK(program.said("fallback", {"reason=launch_failed", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"}));
  CHECK(program.said("winner", {"site=add "}));
  CHECK_FALSE(program.said("winner", {" block=" + std::to_string(failing)}));
}

TEST_CASE("When all configs but the default fail, the default stays", "[failure]") {
  Program program;
  program.runtime().declare(blocks({64, 2048}));
  Simulation::get().fault("launch_fail:_Z3addifPf:block=64");
  Adder adder(1000);
  program.steps(8, [&] { CHECK(adder.run(program) == CUDA_SUCCESS); });
  adder.holds(8);
  CHECK(program.said("fallback", {"reason=build_failed", "2048 threads"}));
  CHECK(program.said("winner", {"config=0", "reason=failed"}));
}

TEST_CASE("An error of the program's own launch is the program's", "[failure]") {
  Program program;
  program.runtime().declare(blocks({64}));
  Simulation::get().fault("launch_fail:_Z3addifPf:error=1");
  Adder adder(1000);
  program.steps(3, [&] { CHECK(adder.run(program) == CUDA_ERROR_INVALID_VALUE); });
  adder.holds(0);
  CHECK_FALSE(program.said("winner", {"config=1"}));
}

TEST_CASE("A sticky error goes to the program unchanged and ends all tuning", "[failure]") {
  Program program;
  program.runtime().declare(blocks({64, 256}));
  // A trial meets an error that is not of launching: it must not be hidden behind another launch.
  Simulation::get().fault("launch_fail:_Z3addifPf:block=64,error=700");
  Adder adder(1000);
  CUresult result = CUDA_SUCCESS;
  int launches = 0;
  for (; launches < 5 && result == CUDA_SUCCESS; ++launches) {
    program.steps(1, [&] { result = adder.run(program); });
  }
  CHECK(result == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(launches == 2);
  CHECK(program.said("fallback", {"reason=sticky_error", "CUDA_ERROR_ILLEGAL_ADDRESS"}));
  (void)take_seen();
  program.steps(4, [&] { adder.run(program); });
  for (const SeenLaunch& one : take_seen()) CHECK(one.block == 128);
  CHECK(program.armed == 0);
}

TEST_CASE("A winner that stops working is dropped for good", "[failure]") {
  Program program;
  program.runtime().declare(blocks({1024}));
  Adder adder(1 << 16);
  program.steps(5, [&] { adder.run(program, 1, 32); });
  REQUIRE(program.said("winner", {"config=1", "block=1024"}));
  Simulation::get().fault("launch_fail:_Z3addifPf:block=1024,times=2");
  program.steps(1, [&] { CHECK(adder.run(program, 1, 32) == CUDA_SUCCESS); });
  (void)take_seen();
  program.steps(3, [&] { CHECK(adder.run(program, 1, 32) == CUDA_SUCCESS); });
  for (const SeenLaunch& one : take_seen()) CHECK(one.block == 32);
  CHECK(program.said("fallback", {"reason=winner_failed"}));
  adder.holds(9);
}

TEST_CASE("What a stage has measured is stored when it is over, whatever ends the process then",
          "[failure]") {
  std::string folder = "/tmp/contextune-failure-XXXXXX";
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  Options options = Program::quick();
  options.cache_dir = folder;
  options.confirm = true;
  options.confirm_min_pairs = options.confirm_max_pairs = 1000;
  Program program(options);
  program.runtime().declare(blocks({64, 1024}));
  Adder adder(1 << 16);
  for (int i = 0; i < 500 && !program.said("stage", {"stage=confirm"}); ++i)
    program.steps(1, [&] { adder.run(program, 1, 128); });
  REQUIRE(program.said("stage", {"stage=confirm"}));
  program.steps(2, [&] { adder.run(program, 1, 128); });
  for (int i = 0; i < 100 && !program.said("store", {"action=noted"}); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(program.said("store", {"action=noted", "sites=1"}));
  CHECK_FALSE(program.said("winner", {}));
  std::error_code ignored;  // more may be written just now
  std::filesystem::remove_all(folder, ignored);
}

TEST_CASE("A stored winner that cannot be launched is noted before the program goes on",
          "[failure]") {
  const std::string region = GENERATE("process", "nvtx:step");
  std::string folder = "/tmp/contextune-failure-XXXXXX";
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  Options options = Program::quick();
  options.region = region;
  options.cache_dir = folder;
  {
    Program program(options);
    program.runtime().declare(blocks({1024}));
    Adder adder(1 << 16);
    const auto is_saved = [&] { return program.said("store", {"action=saved"}); };
    for (int i = 0; i < 1000 && !is_saved(); ++i) {
      program.steps(1, [&] { adder.run(program, 1, 128); });
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    REQUIRE(is_saved());
    REQUIRE(program.said("winner", {"config=1"}));
  }
  Program program(options);
  program.runtime().declare(blocks({1024}));
  Simulation::get().fault("launch_fail:_Z3addifPf:block=1024");
  Adder adder(1 << 16);
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  program.push("step");
  CHECK(adder.run(program, 1, 128) == CUDA_SUCCESS);
  program.pop();
  // It is waited for, but not for long on a disk that is busy.
  const bool is_noted = program.said("store", {"action=noted"});
  CHECK((is_noted || Clock::now() - begin >= std::chrono::milliseconds(100)));
  (void)take_seen();
  CHECK(program.said("fallback", {"reason=winner_failed"}));
  for (int i = 0; i < 1000 && !program.said("store", {"action=noted"}); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(program.said("store", {"action=noted"}));
  program.steps(3, [&] { CHECK(adder.run(program, 1, 128) == CUDA_SUCCESS); });
  CHECK(program.lines("fallback").size() == 2);  // of that launch, and no more
  adder.holds(4);
  std::filesystem::remove_all(folder);
}
