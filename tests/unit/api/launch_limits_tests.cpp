#include <contextune/launch_limits.hpp>

#include "catch.hpp"

using contextune::Device;
using contextune::Dim3;
using contextune::KernelLimits;
using contextune::LaunchShape;
using contextune::why_not;

namespace {

const Device h100{132, 90, 1024, 227 << 10, 65536, "NVIDIA H100"};

}  // namespace

TEST_CASE("A launch that fits has no reason against it", "[launch_limits]") {
  CHECK(why_not({}, Device{}) == "");
  CHECK(why_not({.grid = {65536, 4, 2}, .block = {32, 32}, .shared_bytes = 227 << 10}, h100) == "");
  CHECK(why_not({.block = {1024}}, KernelLimits{1024, 64, 0, 227 << 10}, h100) == "");
}

TEST_CASE("What a device does not allow is named with both numbers", "[launch_limits]") {
  CHECK(why_not({.block = {1024, 2}}, h100) ==
        "threads in a block: 2048, and the device allows 1024");
  CHECK(why_not({.block = {1025}}, h100) == "the block's x is 1025, and CUDA allows 1024");
  CHECK(why_not({.block = {1, 1, 65}}, h100) == "the block's z is 65, and CUDA allows 64");
  CHECK(why_not({.grid = {1, 65536}}, h100) == "the grid's y is 65536, and CUDA allows 65535");
  CHECK(why_not({.grid = {0}}, h100) == "the grid's x is 0, and has to be at least 1");
  CHECK(why_not({.shared_bytes = (227 << 10) + 1}, h100) ==
        "bytes of shared memory in a block: 232449, and the device allows 232448");
}

TEST_CASE("Clusters need a device that has them and a grid that they divide", "[launch_limits]") {
  const Dim3 two{2, 1, 1};
  CHECK(why_not({.grid = {4}, .cluster = two}, h100) == "");
  CHECK(why_not({.grid = {3}, .cluster = two}, h100) == "the grid is no multiple of the cluster");
  CHECK(why_not({.grid = {64}, .cluster = {32, 1, 1}}, h100) ==
        "blocks in a cluster: 32, and CUDA allows 16");
  CHECK(why_not({.grid = {64}, .cluster = {2, 0, 1}}, h100) ==
        "one extent of the cluster is 0, and the others are not");
  CHECK(why_not({.grid = {4}, .cluster = two}, Device{108, 80}) ==
        "it asks for clusters, and the device, of compute capability 8.0, has none");
}

TEST_CASE("What a kernel was compiled for bounds its launches", "[launch_limits]") {
  CHECK(why_not({.block = {512}}, KernelLimits{.max_threads_per_block = 256}, h100) ==
        "threads in a block: 512, and the kernel allows 256");
  CHECK(why_not({.block = {1024}}, KernelLimits{.registers = 65}, h100) ==
        "registers of a block: 73728, and the device allows 65536");
  CHECK(why_not({.shared_bytes = 2048}, KernelLimits{.max_dynamic_shared_bytes = 1024}, h100) ==
        "bytes of dynamic shared memory in a block: 2048, and the kernel allows 1024");
  CHECK(why_not({.shared_bytes = 200 << 10}, KernelLimits{.static_shared_bytes = 48 << 10}, h100) ==
        "bytes of shared memory in a block, static ones included: 253952, and the device allows "
        "232448");
}

TEST_CASE("What is not known is not held against a launch", "[launch_limits]") {
  CHECK(why_not({.block = {1024}, .shared_bytes = 1 << 20}, KernelLimits{}, Device{}) == "");
}
