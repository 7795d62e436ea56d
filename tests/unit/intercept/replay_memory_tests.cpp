#include "intercept/replay/replay_memory.hpp"

#include <new>

#include "fixture.hpp"

using namespace contextune;
using intercept::MixedMemory;
using intercept::ReplayMemory;

namespace {

CUresult no_host_memory(CUdeviceptr, CUdeviceptr, std::size_t, CUstream) {
  throw std::bad_alloc();
}

}  // namespace

TEST_CASE("Memory that cannot be put back for want of host memory is mixed, as for any reason",
          "[replay]") {
  Simulation& simulation = Simulation::get();
  gpu::Driver driver = simulation.driver;
  driver.cuLibraryLoadData = nullptr;  // it copies by itself
  gpu::BlockKernels kernels(driver);
  constexpr std::size_t num_bytes = 100'000;
  const CUdeviceptr memory = simulation.memory(num_bytes / sizeof(float));
  ReplayMemory replay(driver, simulation.context, kernels, {std::size_t{1} << 30U, 0}, {}, 10);
  replay.add({{memory, num_bytes}});
  REQUIRE(driver.cuMemsetD8Async(memory, 1, num_bytes, CU_STREAM_LEGACY) == CUDA_SUCCESS);
  REQUIRE(driver.cuCtxSynchronize() == CUDA_SUCCESS);
  REQUIRE(replay.finish());
  driver.cuMemcpyAsync = &no_host_memory;
  CHECK_THROWS_AS(replay.restore_initial(), MixedMemory);
  CHECK_THROWS_AS(replay.restore_final(), MixedMemory);
  driver.cuMemcpyAsync = simulation.driver.cuMemcpyAsync;
  replay.restore_initial();
  replay.restore_final();
  CHECK(replay.is_right());
}
