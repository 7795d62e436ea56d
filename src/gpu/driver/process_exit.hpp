#pragma once

namespace contextune::gpu {

/// Whether exit() has come so far that libraries may be torn down which were loaded before some
/// call of watch_exit(). They must not be called any more, and the program, or the CUDA runtime,
/// may still be waiting for the GPU in handlers of its own. Any thread.
[[nodiscard]] bool is_exiting() noexcept;

/// exit() has begun: what a handler that watch_exit() has registered does, for whoever learns of it
/// before all handlers.
void begin_exit() noexcept;

/// A call into a library that crashes where the library ends meanwhile: exit() waits for it. To be
/// made before the look at is_exiting(). Any thread; they nest.
class LibraryCall {
 public:
  LibraryCall() noexcept;
  ~LibraryCall();
  LibraryCall(const LibraryCall&) = delete;
  LibraryCall& operator=(const LibraryCall&) = delete;
};

/// Whether there is none any more, or will be none after at most so long.
[[nodiscard]] bool library_calls_end_within(double seconds) noexcept;

/// To be called after each library is loaded: what was registered last is called first, and so
/// before what that library has registered.
void watch_exit();

/// Sets a call that each begin_exit() makes, on the thread that ends the process: it waits,
/// shortly, for whoever uses the libraries. The process has only one such call.
void set_before_exit(void (*call)() noexcept) noexcept;

}  // namespace contextune::gpu
