#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>

#include "intercept/program/driver_call.hpp"
#include "intercept/program/graph_call.hpp"
#include "intercept/program/thread_state.hpp"
#include "intercept/site/kernel_marks.hpp"
#include "intercept/site/launch_region.hpp"
#include "intercept/site/region_services.hpp"
#include "preload/contextune_abi.h"

namespace contextune::intercept {

class NcclCalls;
class ProcessRegions;
class ProcessSubmission;
class ProcessTimers;

/// The program's launches of kernels and graphs, each of which goes to whoever it belongs to: a
/// recording, a region, or how launches outside of regions reach the driver. Each is made exactly
/// once, with its own result. Any thread; nothing throws.
class ProgramLaunches {
 public:
  /// All outlive it.
  ProgramLaunches(const RegionServices& services, ProcessTimers& timers,
                  ProcessSubmission& submission, ProcessRegions& regions, NcclCalls& nccl)
      : services_(services),
        launcher_(services.launcher),
        open_(services.open),
        recorder_(services.recorder),
        timers_(timers),
        submission_(submission),
        regions_(regions),
        nccl_(nccl),
        kernel_marks_(services.kernels) {}

  /// Takes up the marks that are kernels and graphs; before any launch.
  void read_marks();

  [[nodiscard]] CUresult launch(const contextune_launch& call) noexcept;
  [[nodiscard]] CUresult launch_graph(const GraphCall& call) noexcept;
  /// The program has launched by an entry point that is not looked at.
  void unsupported(const char* entry_point) noexcept;

  /// Launches that were seen and that no region had.
  [[nodiscard]] std::uint64_t unassigned() const noexcept {
    return unassigned_.load(std::memory_order_relaxed);
  }

 private:
  /// Null is every one.
  [[nodiscard]] bool is_current(CUcontext context) const noexcept;
  [[nodiscard]] bool is_stopped() const noexcept {
    return services_.stopped.load(std::memory_order_acquire);
  }
  [[nodiscard]] CUresult launch_in_found(const contextune_launch& call,
                                         LaunchRegion& found) noexcept;
  [[nodiscard]] CUresult launch_slowly(const contextune_launch& call, ThreadState& thread) noexcept;
  /// Whichever launch hears first that the context is in error tells what was in flight.
  [[nodiscard]] CUresult after_launch(CUresult result) const noexcept {
    if (result != CUDA_SUCCESS && is_sticky_error(result)) services_.broke(result);
    return result;
  }

  const RegionServices& services_;
  const Launcher& launcher_;
  OpenRegions& open_;
  Recorder& recorder_;
  ProcessTimers& timers_;
  ProcessSubmission& submission_;
  ProcessRegions& regions_;
  NcclCalls& nccl_;
  KernelMarks kernel_marks_;
  bool graphs_are_regions_ = false;  ///< each launch of one is an entry
  std::atomic<bool> said_unassigned_{false};
  std::atomic<std::uint64_t> unassigned_{0};
};

}  // namespace contextune::intercept
