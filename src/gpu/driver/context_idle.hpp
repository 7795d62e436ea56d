#pragma once

#include "gpu/driver/driver.hpp"

namespace contextune::gpu {

/// Whether all work in the context is complete, without waiting for it; takes at most
/// 0.1 ms. False as well where the
/// driver does not tell (before CUDA 12.5). While a stream of the context is captured it must not
/// be asked: that would end the capture.
[[nodiscard]] bool is_idle(const Driver& driver, CUcontext context) noexcept;

}  // namespace contextune::gpu
