#pragma once

#include "preload/contextune_abi.h"

namespace contextune::intercept {

/// Makes a call of the registry's kind `load` with the driver's own function. `args` point at the
/// arguments, in order, as the frontend shows them.
[[nodiscard]] CUresult load_code(const contextune_frontend& frontend, contextune_fn fn,
                                 void* const* args) noexcept;

}  // namespace contextune::intercept
