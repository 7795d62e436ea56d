#pragma once

namespace contextune::log {

/// The rank that this process was started as: CONTEXTUNE_RANK, or what torchrun, Open MPI, PMI or
/// Slurm say; 0 where nobody says.
[[nodiscard]] int rank_of_environment() noexcept;

}  // namespace contextune::log
