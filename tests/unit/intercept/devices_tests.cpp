// A process with two devices (SIMCUDA_DEVICES, see CMakeLists.txt).
#include "fixture.hpp"

using namespace contextune;

TEST_CASE("What is settled on one device says nothing about the other", "[devices]") {
  Simulation& simulation = Simulation::get();
  const gpu::Driver& driver = simulation.driver;
  Program program;
  program.runtime().declare(blocks({32, 1024}));

  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  REQUIRE(driver.cuLibraryLoadData(&library, "simcuda image 1\nkernel _Z3addifPf\n", nullptr,
                                   nullptr, 0, nullptr, nullptr, 0) == CUDA_SUCCESS);
  REQUIRE(driver.cuLibraryGetKernel(&kernel, library, "_Z3addifPf") == CUDA_SUCCESS);
  const auto everywhere = reinterpret_cast<CUfunction>(kernel);
  CUcontext second = nullptr;
  REQUIRE(driver.cuDevicePrimaryCtxRetain(&second, 1) == CUDA_SUCCESS);

  int n = 1 << 16;
  float value = 1;
  const auto block_of_a_launch = [&](CUcontext context) {
    REQUIRE(driver.cuCtxSetCurrent(context) == CUDA_SUCCESS);
    CUdeviceptr x = simulation.memory(static_cast<std::size_t>(n));
    (void)take_seen();
    program.steps(1, [&] {
      REQUIRE(program.launch(everywhere, 8, 128, {&n, &value, &x}) == CUDA_SUCCESS);
    });
    const auto seen = take_seen();
    REQUIRE(seen.size() == 1);
    return seen[0].block;
  };
  for (int i = 0; i < 20; ++i) (void)block_of_a_launch(simulation.context);
  REQUIRE(program.said("winner", {"block=1024"}));
  // The first launch found it settled, the second remembers that.
  for (int i = 0; i < 2; ++i) CHECK(block_of_a_launch(simulation.context) == 1024);
  CHECK(block_of_a_launch(second) == 128);
  for (int i = 0; i < 2; ++i) CHECK(block_of_a_launch(simulation.context) == 1024);
}
