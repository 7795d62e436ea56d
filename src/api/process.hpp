#pragma once

#include "api/api_table.h"
#include "gpu/driver/driver.hpp"
#include "intercept/runtime/runtime.hpp"

namespace contextune::api {

/// This copy's own table.
[[nodiscard]] const contextune_api* own_api() noexcept;

/// The table of the copy that runs in this process: the one that the frontend attached, else our
/// own. A few nanoseconds once it is decided.
[[nodiscard]] const contextune_api* active_api() noexcept;

/// This copy's runtime, or null while there is none. Where no frontend sees the
/// program's calls, it is started here as soon as the program has initialised CUDA.
[[nodiscard]] intercept::Runtime* runtime() noexcept;

/// The driver's own entry points, or null. Only with a runtime.
[[nodiscard]] const gpu::Driver* driver() noexcept;

/// Whether the program has loaded and initialised the driver. Neither is done for it.
[[nodiscard]] bool driver_in_use() noexcept;

/// Ordinal of the current device; 0 where there is but one; -1 while no context is current. Only
/// with a runtime.
[[nodiscard]] int current_device() noexcept;

/// The state of contextune in this process, and a sentence on why it can do no more.
[[nodiscard]] contextune_state current_state() noexcept;
[[nodiscard]] const char* state_reason() noexcept;

}  // namespace contextune::api
