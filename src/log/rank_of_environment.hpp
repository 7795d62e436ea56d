#pragma once

#include <cstdint>

namespace contextune::log {

/// The rank that this process was started as: CONTEXTUNE_RANK, or what torchrun, Open MPI, PMI or
/// Slurm say; 0 where nobody says.
[[nodiscard]] int rank_of_environment() noexcept;

/// How many ranks the same say that there are; 1 where nobody says.
[[nodiscard]] std::uint32_t ranks_of_environment() noexcept;

}  // namespace contextune::log
