#pragma once

#include "api/api_table.h"

#include "intercept/runtime/runtime.hpp"

namespace contextune::api {

/// Declares the kernel to the runtime, or keeps the declaration until there is one. 0, or -1 with
/// last_error().
int declare_kernel(const contextune_kernel* kernel) noexcept;

/// Declarations that wait for a runtime.
[[nodiscard]] bool has_pending_declarations() noexcept;
void hand_over_declarations(intercept::Runtime& runtime) noexcept;
void hand_over_declarations(const contextune_api& other) noexcept;

}  // namespace contextune::api
