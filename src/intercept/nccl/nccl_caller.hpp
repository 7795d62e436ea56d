#pragma once

#include "preload/contextune_abi.h"

namespace contextune::intercept {

/// Before each call of the program to NCCL: finds out where the code of that NCCL lies, if the call
/// makes communicators.
void find_nccl_code(const contextune_nccl_call& call) noexcept;

/// The version of the NCCL that was found last: 22803 for 2.28.3; 0: none was.
[[nodiscard]] int nccl_version() noexcept;

/// Whether what this thread is in was called by NCCL, on a thread of its own or of the program, and
/// not to give memory to the program. Walks the stack, microseconds, unless no NCCL is known.
[[nodiscard]] bool is_called_by_nccl() noexcept;

/// Whether NCCL has started this thread: nothing of the program lies below NCCL on its stack.
[[nodiscard]] bool is_thread_of_nccl() noexcept;

/// Why that cannot be told of an NCCL that the program uses, a clause; null: it can.
[[nodiscard]] const char* nccl_code_unknown() noexcept;

}  // namespace contextune::intercept
