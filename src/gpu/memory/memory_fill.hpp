#pragma once

#include <cstdint>
#include <vector>

#include "gpu/driver/driver.hpp"
#include "gpu/memory/footprint.hpp"

namespace contextune::gpu {

/// The contents of filled memory: bytes that are no result, other ones for each seed.
struct Fill {
  /// A place holds numbers of another kind for each of so many seeds in a row. A kernel's use of
  /// the numbers that it finds there, such as taking the larger of two, may show with one kind
  /// only.
  static constexpr std::uint64_t num_kinds = 3;

  std::uint64_t seed = 0;
  /// Numbers above zero: of others small differences would become large ones, as in sums that are
  /// near zero.
  bool is_above_zero = false;
};

/// Has a stream write that to device memory.
/// @return the pattern, which is to be kept until the stream has come so far
/// @throws Error if the driver refuses
[[nodiscard]] std::vector<std::byte> fill_memory(const Driver& driver, CUstream stream,
                                                 MemoryRange range, const Fill& fill);

}  // namespace contextune::gpu
