#pragma once

#include <atomic>
#include <cstdint>

#include <cuda.h>

#include "intercept/site/region_services.hpp"

namespace contextune::intercept {

class ProcessRegions;
class ProcessSubmission;
class ProcessTimers;

/// Streams and contexts that the program destroys: whoever keeps something of one is told before it
/// goes. Any thread; nothing throws.
class DestroyedHandles {
 public:
  /// All outlive it.
  DestroyedHandles(const RegionServices& services, ProcessTimers& timers,
                   ProcessSubmission& submission, ProcessRegions& regions)
      : services_(services), timers_(timers), submission_(submission), regions_(regions) {}

  void stream_goes_away(CUstream stream) noexcept;
  /// @param gone it is already, and with it everything of ours that was in it
  void context_goes_away(CUcontext context, bool gone = false) noexcept;
  void primary_context_goes_away(CUdevice device) noexcept;
  /// The program has given it back, and others may still hold it.
  void primary_context_released(CUdevice device) noexcept;

 private:
  const RegionServices& services_;
  ProcessTimers& timers_;
  ProcessSubmission& submission_;
  ProcessRegions& regions_;
  std::atomic<std::uint32_t> contexts_gone_{0};
};

}  // namespace contextune::intercept
