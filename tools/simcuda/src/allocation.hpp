#pragma once

#include "contexts.hpp"

namespace simcuda {

/// Memory for a program. Where a device is full, frees that wait for work on a stream come first.
/// @throws Failure: OUT_OF_MEMORY, or what a fault says
Memory::Block& allocate(Context& context, int device, std::size_t bytes, Memory::Kind kind,
                        DriverLock& lock);

/// Counts an allocation that is to be hit by a fault. @throws Failure with the fault's error
void meet_allocation_fault(Memory::Kind kind, std::size_t bytes);

}  // namespace simcuda
