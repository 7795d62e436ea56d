#pragma once

#include <cuda.h>

#include <cstdint>
#include <vector>

#include "gpu/driver/driver.hpp"
#include "intercept/memory/process_memory.hpp"
#include "intercept/submit/submitted_kernels.hpp"

namespace contextune::intercept {

/// Tells the launches whose kernels may write where others look while the GPU works: in memory of
/// the host, of another process or of another device.
///
/// A kernel in a stream begins when all that the one before has written can be seen from there. A
/// kernel in a graph begins when its own device can see it: a flag that it sets may be seen
/// earlier than what the kernel before has written.
///
/// Not thread-safe: Submitter's, under its lock. Nothing throws.
class OutsideMemory {
 public:
  OutsideMemory(const gpu::Driver& driver, const ProcessMemory& memory)
      : driver_(driver), memory_(memory) {}

  /// Whether one of the arguments is an address there.
  /// @param context the thread's current one
  [[nodiscard]] bool is_reached_by(const contextune_launch& call, const SubmittedKernel& kernel,
                                   CUcontext context) noexcept;

  /// Before a context goes away.
  void forget_context() noexcept { context_ = nullptr; }

 private:
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };

  [[nodiscard]] bool refresh(CUcontext context) noexcept;
  [[nodiscard]] bool has(std::uint64_t address) const noexcept;

  const gpu::Driver& driver_;
  const ProcessMemory& memory_;
  CUcontext context_ = nullptr;  ///< whose device the ranges are outside of
  CUdevice device_ = 0;          ///< that one
  std::uint64_t version_ = 0;    ///< of the ranges
  std::vector<Range> ranges_;    ///< sorted
};

}  // namespace contextune::intercept
