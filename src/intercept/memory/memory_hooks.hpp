#pragma once

#include <cstddef>
#include <optional>

#include "intercept/memory/process_memory.hpp"
#include "preload/contextune_abi.h"

namespace contextune::gpu {
struct Driver;
}

namespace contextune::intercept {

/// Notes what a call of the program is about to do to its memory. Any other call than those that
/// give memory back is left alone. On the thread that makes the call; does not throw.
void memory_call_begins(ProcessMemory& memory, contextune_fn fn, void* const* args) noexcept;

/// How many bytes of the device's memory a call is about to take, so that none of ours should be in
/// its way; of an array no less than that. Absent: it takes none.
[[nodiscard]] std::optional<std::size_t> memory_taken_by(contextune_fn fn,
                                                         void* const* args) noexcept;

/// Notes what the call has done. Asks the driver where the memory is, but waits for nothing. An
/// answer to how much is free is corrected by what copies of ours take.
void note_memory_call(ProcessMemory& memory, const gpu::Driver& driver, contextune_fn fn,
                      void* const* args, CUresult result) noexcept;

}  // namespace contextune::intercept
