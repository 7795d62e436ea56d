#pragma once

#include <cstdint>

namespace contextune::intercept {

/// One rank of a job.
struct RankPlace {
  std::uint32_t rank = 0;
  std::uint32_t num_ranks = 1;
};

/// The place that a launcher gave to this process; rank 0 of 1 where none did.
[[nodiscard]] RankPlace launched_place() noexcept;

}  // namespace contextune::intercept
