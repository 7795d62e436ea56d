#pragma once

#include "intercept/host/hot_words.hpp"
#include "preload/contextune_abi.h"

namespace contextune::intercept {

/// The runtime that the hooks work for; null in a forked child.
[[nodiscard]] inline ProcessRuntime* running_runtime() noexcept {
  return hot_words.running.load(std::memory_order_acquire);
}

/// The functions that the frontend calls. Nothing here throws; every call that the program made is
/// made exactly once, with its own result.
[[nodiscard]] const contextune_core* hook_table() noexcept;

/// Keeps what the hooks need even where there is no runtime.
void set_hook_frontend(const contextune_frontend* frontend) noexcept;

}  // namespace contextune::intercept
