#pragma once

#include "gpu/driver.hpp"

namespace contextune::intercept {

/// Waits until all work in the context is complete, but no longer than that: work that itself waits
/// for the host would never be.
/// @return false: it is not complete, or the driver answered an error, which `why` names
[[nodiscard]] bool wait_until_idle(const gpu::Driver& driver, CUcontext context, double seconds,
                                   std::string& why);

/// @return false: it is not complete by then. An error of the driver ends it as well.
[[nodiscard]] bool ends_within(const gpu::Driver& driver, CUcontext context, double seconds);

}  // namespace contextune::intercept
