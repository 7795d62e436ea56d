#pragma once

#include "api/api_table.h"

namespace contextune::api {

/// Says in the log that a choice of another copy of this library runs its default, and which copy.
void say_runs_default(const char* choice, const char* file) noexcept;
/// Says why nothing is known of a problem that contextune_choice::problem() does not have.
/// @return -1
int fail_unready(const contextune_choice* choice, uint32_t problem) noexcept;

}  // namespace contextune::api
