#pragma once

#include <thread>

#include "core/trials/timer.hpp"
#include "gpu/driver/driver.hpp"

namespace contextune::gpu {

/// The stream that a handle names where it is used. A default stream is another one in every
/// context, and the per-thread one also in every thread.
struct UsedStream {
  StreamHandle handle = nullptr;
  std::thread::id thread;       ///< of a per-thread stream
  CUcontext context = nullptr;  ///< of a default stream

  UsedStream() = default;
  /// As the calling thread and its current context have it.
  UsedStream(const Driver& driver, StreamHandle named);

  [[nodiscard]] CUstream get() const noexcept { return static_cast<CUstream>(handle); }
  [[nodiscard]] bool is_per_thread() const noexcept { return get() == CU_STREAM_PER_THREAD; }
  [[nodiscard]] bool is_default() const noexcept {
    return is_per_thread() || get() == CU_STREAM_LEGACY;
  }
  bool operator==(const UsedStream&) const = default;
};

inline UsedStream::UsedStream(const Driver& driver, StreamHandle named) : handle(named) {
  if (is_per_thread()) thread = std::this_thread::get_id();
  if (is_default()) context = context_of(driver, get());
}

}  // namespace contextune::gpu
