#pragma once

#include <atomic>
#include <cstdint>

#include "core/trials/timer.hpp"
#include "gpu/driver/driver.hpp"

namespace contextune::gpu {

/// The calling thread's, above 0. That of a thread that has ended never comes again, other than
/// std::thread::id: the next thread has a per-thread stream of its own.
[[nodiscard]] inline std::uint64_t thread_number() noexcept {
  static std::atomic<std::uint64_t> last{0};
  thread_local const std::uint64_t own = ++last;
  return own;
}

/// The stream that a handle names where it is used. A default stream is another one in every
/// context, and the per-thread one also in every thread.
struct UsedStream {
  StreamHandle handle = nullptr;
  std::uint64_t thread = 0;     ///< of a per-thread stream
  CUcontext context = nullptr;  ///< of a default stream

  UsedStream() = default;
  /// As the calling thread and its current context have it.
  UsedStream(const Driver& driver, StreamHandle named);

  [[nodiscard]] CUstream get() const noexcept { return static_cast<CUstream>(handle); }
  [[nodiscard]] bool is_per_thread() const noexcept { return get() == CU_STREAM_PER_THREAD; }
  [[nodiscard]] bool is_default() const noexcept {
    return is_per_thread() || get() == CU_STREAM_LEGACY;
  }
  /// Whether it is what its handle means on the calling thread.
  [[nodiscard]] bool is_reached() const noexcept {
    return !is_per_thread() || thread == thread_number();
  }
  bool operator==(const UsedStream&) const = default;
};

inline UsedStream::UsedStream(const Driver& driver, StreamHandle named) : handle(named) {
  if (is_per_thread()) thread = thread_number();
  if (is_default()) context = context_of(driver, get());
}

}  // namespace contextune::gpu
