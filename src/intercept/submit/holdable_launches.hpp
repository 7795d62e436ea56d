#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "gpu/driver/driver.hpp"
#include "intercept/memory/process_memory.hpp"
#include "intercept/submit/launch_stream.hpp"
#include "intercept/submit/submitted_kernels.hpp"

namespace contextune::intercept {

/// Tells the launches that may be held back: a graph of them does what they do, and the GPU is at
/// work meanwhile. Not thread-safe: Submitter's, under its lock. Nothing throws.
///
/// A kernel in a stream begins when all that the one before has written can be seen from memory of
/// the host, of another process or of another device. A kernel in a graph begins when its own
/// device can see it: a flag that it sets there may be seen earlier than what the kernel before has
/// written. So no launch is held that may write there.
class HoldableLaunches {
 public:
  HoldableLaunches(const gpu::Driver& driver, const ProcessMemory& memory)
      : driver_(driver), memory_(memory) {}

  /// Whether the driver is sure to accept the launch, and none of its arguments is an address
  /// outside of its device's memory.
  /// @param call of a plain launch on a stream of the current context
  [[nodiscard]] bool has(const contextune_launch& call, const SubmittedKernel& kernel,
                         CUcontext context) noexcept {
    return kernel.may_gather && call.extra == nullptr &&
           (call.kernel_params != nullptr || kernel.parameters.empty()) &&
           (call.shared_bytes == 0 || kernel.accepted_at == shapes_) && kernel.is_accepted(call) &&
           !reaches_outside(call, kernel, context);
  }
  /// Whether launches on the stream are what they are in a graph: no priority, no policy of its
  /// own.
  [[nodiscard]] bool is_plain(const LaunchStream& stream) noexcept;

  /// Whether the GPU is at work on the stream.
  [[nodiscard]] bool is_busy(const LaunchStream& stream, std::uint64_t now) noexcept {
    if (now - checked_ns_ < busy_for_ns) return true;
    checked_ns_ = now;
    return driver_.cuStreamQuery(stream.handle) == CUDA_ERROR_NOT_READY;
  }
  /// It is, since it was given work.
  void set_busy(std::uint64_t now) noexcept { checked_ns_ = now; }

  /// Changes whenever a launch that was accepted may not be any more.
  [[nodiscard]] std::uint64_t shapes() const noexcept { return shapes_; }
  void forget_shapes() noexcept { ++shapes_; }
  /// The driver has accepted the launch, which began at these shapes.
  void accept(const contextune_launch& call, SubmittedKernel& kernel, std::uint64_t shapes) const;

  /// Streams go away, or change.
  void forget_streams() noexcept { plain_.clear(); }
  /// Before a context goes away.
  void forget_context() noexcept { context_ = nullptr; }

 private:
  /// A GPU that had work so lately has some still: asking costs half a microsecond.
  static constexpr std::uint64_t busy_for_ns = 8'000;

  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };

  /// Whether one of the arguments is an address outside of the memory of the context's device.
  [[nodiscard]] bool reaches_outside(const contextune_launch& call, const SubmittedKernel& kernel,
                                     CUcontext context) noexcept;
  [[nodiscard]] bool refresh(CUcontext context) noexcept;
  [[nodiscard]] bool is_outside(std::uint64_t address) const noexcept;

  const gpu::Driver& driver_;
  const ProcessMemory& memory_;
  CUcontext context_ = nullptr;        ///< whose device the ranges are outside of
  CUdevice device_ = 0;                ///< that one
  std::uint64_t outside_version_ = 0;  ///< of the ranges
  std::vector<Range> outside_;         ///< sorted
  std::uint64_t shapes_ = 0;
  std::uint64_t checked_ns_ = 0;  ///< when the GPU was last known to be at work
  std::set<LaunchStream> plain_;
};

}  // namespace contextune::intercept
