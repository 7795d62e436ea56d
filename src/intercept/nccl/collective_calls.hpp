#pragma once

#include "collective/collective_calls.hpp"

namespace contextune::intercept {

/// The collective calls of this process. Never destroyed.
[[nodiscard]] collective::CollectiveCalls& collective_calls() noexcept;

}  // namespace contextune::intercept
