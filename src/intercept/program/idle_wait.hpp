#pragma once

#include <optional>

#include "gpu/driver/driver.hpp"
#include "intercept/program/capture_watch.hpp"

namespace contextune::intercept {

/// Waits until all work in the context is complete, but no longer than that: work that itself waits
/// for the host would never be.
/// @param captures looked at once more on the thread that waits, since that would end one; null:
/// not
/// @return false: it is not complete, or the driver answered an error, which `why` names
[[nodiscard]] bool wait_until_idle(const gpu::Driver& driver, CUcontext context, double seconds,
                                   std::string& why, CaptureWatch* captures = nullptr);

/// @param captures as above
/// @return what the driver answered when it was complete, which may be an error; absent: it is not
///         complete by then
[[nodiscard]] std::optional<CUresult> end_within(const gpu::Driver& driver, CUcontext context,
                                                 double seconds, CaptureWatch& captures);

/// The seconds that the context is known to have been at work. They count from the beginning of a
/// wait that was given up, if its work has not ended since; else 0.
/// @throws std::system_error
[[nodiscard]] double busy_seconds(CUcontext context);

}  // namespace contextune::intercept
