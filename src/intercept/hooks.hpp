#pragma once

#include "preload/contextune_abi.h"

namespace contextune::intercept {

class ProcessRuntime;

/// The runtime that the hooks work for; null in a forked child.
[[nodiscard]] ProcessRuntime* running_runtime() noexcept;

/// What the frontend calls. Nothing here throws; every call that the program made is made exactly
/// once, with its own result.
[[nodiscard]] const contextune_core* hook_table() noexcept;

/// Keeps what the hooks need even where there is no runtime.
void set_hook_frontend(const contextune_frontend* frontend) noexcept;

}  // namespace contextune::intercept
