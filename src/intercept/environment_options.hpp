#pragma once

#include <string>
#include <vector>

#include <contextune/options.hpp>

namespace contextune::intercept {

/// `defaults` under the variables of the environment. What cannot be read keeps its default, and a
/// sentence on it goes to `faults`.
[[nodiscard]] Options options_from_environment(const Options& defaults,
                                               std::vector<std::string>& faults);

/// The rank that this process was started as: CONTEXTUNE_RANK, or what torchrun, Open MPI, PMI or
/// Slurm say; 0 where nobody says.
[[nodiscard]] int rank_from_environment() noexcept;

}  // namespace contextune::intercept
