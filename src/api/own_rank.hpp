#pragma once

#include <cstdint>

namespace contextune::api {

/// contextune_rank() in the copy that runs.
void own_rank(std::uint32_t* rank, std::uint32_t* num_ranks) noexcept;

}  // namespace contextune::api
