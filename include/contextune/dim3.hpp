#pragma once

#include <cstdint>

namespace contextune {

/// Blocks in a grid, threads in a block, or blocks in a cluster.
struct Dim3 {
  std::uint32_t x = 1;
  std::uint32_t y = 1;
  std::uint32_t z = 1;
  bool operator==(const Dim3&) const = default;
};

}  // namespace contextune
