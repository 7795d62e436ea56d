#pragma once

#include <cstdint>
#include <span>

namespace contextune::gpu {

/// Says grid, block and dynamic shared memory in a CUlaunchConfig or CUDA_KERNEL_NODE_PARAMS.
template <typename Launched>
void set_shape(Launched& launched, std::span<const std::uint32_t, 3> grid,
               std::span<const std::uint32_t, 3> block, std::uint32_t shared_bytes) noexcept {
  launched.gridDimX = grid[0];
  launched.gridDimY = grid[1];
  launched.gridDimZ = grid[2];
  launched.blockDimX = block[0];
  launched.blockDimY = block[1];
  launched.blockDimZ = block[2];
  launched.sharedMemBytes = shared_bytes;
}

}  // namespace contextune::gpu
