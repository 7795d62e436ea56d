#pragma once

#include <optional>

#include "gpu/driver.hpp"

namespace contextune::intercept {

/// Waits until all work in the context is complete, but no longer than that: work that itself waits
/// for the host would never be.
/// @return false: it is not complete, or the driver answered an error, which `why` names
[[nodiscard]] bool wait_until_idle(const gpu::Driver& driver, CUcontext context, double seconds,
                                   std::string& why);

/// @return what the driver answered when it was complete, which may be an error; absent: it is not
///         complete by then
[[nodiscard]] std::optional<CUresult> end_within(const gpu::Driver& driver, CUcontext context,
                                                 double seconds);

}  // namespace contextune::intercept
