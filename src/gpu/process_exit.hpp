#pragma once

namespace contextune::gpu {

/// Whether exit() has come so far that libraries may be torn down which were loaded before some
/// call of watch_exit(). They must not be called any more, and the program, or the CUDA runtime,
/// may still be waiting for the GPU in handlers of its own. Any thread.
[[nodiscard]] bool is_exiting() noexcept;

/// To be called once after each library is loaded: what was registered last is called first.
void watch_exit();

}  // namespace contextune::gpu
