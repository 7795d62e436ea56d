#pragma once

#include <cuda.h>

#include <atomic>
#include <mutex>
#include <vector>

#include "gpu/driver/driver.hpp"

namespace contextune::intercept {

/// Which streams are being captured into graphs. Any thread; does not throw.
class CaptureWatch {
 public:
  explicit CaptureWatch(const gpu::Driver& driver) : driver_(driver) {}

  /// The program is about to begin one; then begun() or failed(), on the same thread.
  void begin(CUstream stream) noexcept;
  void begun(CUstream stream) noexcept;
  void failed(CUstream stream) noexcept { remove(stream, false); }
  /// It is being captured, whether its begin was seen or not.
  void note(CUstream stream) noexcept;
  /// The capture ended, or the stream is gone.
  void end(CUstream stream) noexcept { remove(stream, true); }

  /// False: no capture is under way. A load.
  [[nodiscard]] bool possible() const noexcept {
    return count_.load(std::memory_order_acquire) != 0;
  }
  /// Asks the driver about those that have begun: a capture can end in ways that are not seen.
  [[nodiscard]] bool any() noexcept;

  /// Whether a launch on that stream goes into a graph.
  [[nodiscard]] bool is_capturing(CUstream stream) const noexcept;

 private:
  struct Capture {
    CUstream stream;
    bool begun;  ///< the driver knows of it
  };

  void remove(CUstream stream, bool begun) noexcept;
  void publish() noexcept { count_.store(captures_.size(), std::memory_order_release); }

  const gpu::Driver& driver_;
  std::atomic<std::size_t> count_{0};
  std::mutex mutex_;
  std::vector<Capture> captures_;
};

}  // namespace contextune::intercept
