#pragma once

#include "collective/collective_calls.hpp"
#include "gpu/driver/driver.hpp"

namespace contextune::intercept {

/// The collective calls of this process. Never destroyed.
[[nodiscard]] collective::CollectiveCalls& collective_calls() noexcept;

/// Which driver they ask for the device of a thread; before that they know none.
/// @param driver lives as long as the process
void set_driver_of_calls(const gpu::Driver& driver) noexcept;

}  // namespace contextune::intercept
