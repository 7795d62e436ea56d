#pragma once

#include <mutex>

#include "core/trials/store.hpp"
#include "gpu/driver/driver.hpp"

namespace contextune::intercept {

class ProcessRanks;

/// Where this process is, as far as winners depend on it: hardware, software, and settings of CUDA
/// and NCCL. Any thread.
class ProcessEnvironment {
 public:
  /// @param driver and `ranks` outlive it
  ProcessEnvironment(const gpu::Driver& driver, ProcessRanks& ranks)
      : driver_(driver), ranks_(ranks) {}

  /// With the current device's hardware.
  /// @throws std::bad_alloc
  [[nodiscard]] TuningEnvironment here();

 private:
  const gpu::Driver& driver_;
  ProcessRanks& ranks_;
  std::mutex mutex_;
  TuningEnvironment machine_;  ///< what was found out of it for the device
  CUdevice device_ = -1;
};

}  // namespace contextune::intercept
