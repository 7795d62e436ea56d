#pragma once

namespace contextune::intercept {

/// Whether this thread runs a signal handler, which may have interrupted it while it held locks: of
/// libc's malloc, for one. False too where a function between has no unwind information. Takes no
/// lock and no memory.
[[nodiscard]] bool is_in_signal_handler() noexcept;

}  // namespace contextune::intercept
