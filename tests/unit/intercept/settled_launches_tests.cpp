#include "catch.hpp"
#include "intercept/program/thread_state.hpp"

using namespace contextune::intercept;

namespace {

const LaunchRegion* region(std::uintptr_t number) {
  return reinterpret_cast<LaunchRegion*>(number);
}

contextune_launch call_of(std::uintptr_t function, unsigned grid, unsigned block) {
  contextune_launch call{};
  call.fn = contextune_fn_cuLaunchKernel;
  call.function = reinterpret_cast<CUfunction>(function);
  for (int i = 0; i < 3; ++i) call.grid[i] = call.block[i] = 1;
  call.grid[0] = grid;
  call.block[0] = block;
  return call;
}

struct Seen {
  CUfunction function;
  unsigned grid, block, shared;
};
Seen seen{};

CUresult launch(CUfunction function, unsigned grid, unsigned, unsigned, unsigned block, unsigned,
                unsigned, unsigned shared, CUstream, void**, void**) {
  seen = {function, grid, block, shared};
  return CUDA_SUCCESS;
}

Variant variant_of(std::uintptr_t function, std::uint32_t grid, std::uint32_t block) {
  Variant variant;
  variant.usable = true;
  variant.function = reinterpret_cast<CUfunction>(function);
  variant.grid = {grid, 1, 1};
  variant.block = {block, 1, 1};
  variant.shared_bytes = 16;
  return variant;
}

}  // namespace

TEST_CASE("A settled launch is found by all that the program says of it", "[settled_launches]") {
  SettledLaunches launches;
  const contextune_launch call = call_of(0x1000, 8, 128);
  CHECK(launches.find(call, region(64)) == nullptr);
  const Variant variant = variant_of(0x2000, 4, 256);
  launches.remember(call, region(64), nullptr, settled_version.load(), &variant, &launch);
  const SettledLaunch* known = launches.find(call, region(64));
  REQUIRE(known != nullptr);
  CHECK(known->issue(call) == CUDA_SUCCESS);
  CHECK(seen.function == variant.function);
  CHECK(seen.grid == 4);
  CHECK(seen.block == 256);
  CHECK(seen.shared == 16);

  CHECK(launches.find(call, region(128)) == nullptr);
  CHECK(launches.find(call_of(0x3000, 8, 128), region(64)) == nullptr);
  contextune_launch other = call;
  other.grid[2] = 2;
  CHECK(launches.find(other, region(64)) == nullptr);
  other = call;
  other.shared_bytes = 4;
  CHECK(launches.find(other, region(64)) == nullptr);
  other = call;
  other.fn = contextune_fn_cuLaunchKernel_ptsz;
  CHECK(launches.find(other, region(64)) == nullptr);
  other = call;
  CUlaunchConfig config{};
  config.numAttrs = 1;
  other.config = &config;
  CHECK(launches.find(other, region(64)) == nullptr);
}

TEST_CASE("What changed since makes a settled launch unknown", "[settled_launches]") {
  SettledLaunches launches;
  const contextune_launch call = call_of(0x1000, 8, 128);
  const std::uint64_t before = settled_version.load();
  launches.remember(call, region(64), nullptr, before, nullptr, nullptr);
  REQUIRE(launches.find(call, region(64)) != nullptr);
  CHECK(launches.find(call, region(64))->launch == nullptr);  // as written
  settled_changed();
  CHECK(launches.find(call, region(64)) == nullptr);
  // It changed while the launch was looked at.
  launches.remember(call, region(64), nullptr, before, nullptr, nullptr);
  CHECK(launches.find(call, region(64)) == nullptr);
}
