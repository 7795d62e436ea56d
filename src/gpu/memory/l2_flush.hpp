#pragma once

#include "gpu/driver/driver.hpp"

namespace contextune::gpu {

/// Fills the L2 cache of the current context's device with memory that nobody reads, and waits for
/// that. Work of the program that is under way is waited for too.
/// @throws Error if there is no context, or no memory of twice the cache's size
void flush_l2(const Driver& driver);

}  // namespace contextune::gpu
