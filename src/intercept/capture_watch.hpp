#pragma once

#include <cuda.h>

#include <atomic>
#include <mutex>
#include <vector>

#include "gpu/driver.hpp"

namespace contextune::intercept {

/// Which streams are being captured into graphs. Any thread; does not throw.
class CaptureWatch {
 public:
  explicit CaptureWatch(const gpu::Driver& driver) : driver_(driver) {}

  void begin(CUstream stream) noexcept;
  /// The capture ended, failed to begin, or the stream is gone.
  void end(CUstream stream) noexcept;

  /// False: no capture is under way. A load.
  [[nodiscard]] bool possible() const noexcept {
    return count_.load(std::memory_order_acquire) != 0;
  }
  /// Asks the driver about those that may be: a capture can end in ways that are not seen.
  [[nodiscard]] bool any() noexcept;

  /// Whether a launch on that stream goes into a graph.
  [[nodiscard]] bool is_capturing(CUstream stream) const noexcept;

 private:
  void publish() noexcept { count_.store(streams_.size(), std::memory_order_release); }

  const gpu::Driver& driver_;
  std::atomic<std::size_t> count_{0};
  std::mutex mutex_;
  std::vector<CUstream> streams_;
};

}  // namespace contextune::intercept
