#pragma once

#include <cstddef>

#include "intercept/ranks/rank_group.hpp"
#include "intercept/runtime/runtime.hpp"

namespace contextune::api {

/// The ranks of the job that an ncclComm_t has. They are joined first where the job is not known:
/// all of them have to ask. Waits for them, with a deadline.
[[nodiscard]] intercept::RankGroup group_of(intercept::Runtime& runtime, void* communicator);

/// The C function, in the copy that runs.
[[nodiscard]] int communicator_ranks(void* communicator, char* text, std::size_t size) noexcept;

}  // namespace contextune::api
