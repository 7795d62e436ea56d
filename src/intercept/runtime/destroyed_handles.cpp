#include "intercept/runtime/destroyed_handles.hpp"

#include <bit>

#include "intercept/graphs/graph_table.hpp"
#include "intercept/host/context_table.hpp"
#include "intercept/memory/allocation_map.hpp"
#include "intercept/program/capture_watch.hpp"
#include "intercept/program/thread_state.hpp"
#include "intercept/recording/recorder.hpp"
#include "intercept/regions/tunable_launch.hpp"
#include "intercept/runtime/process_regions.hpp"
#include "intercept/runtime/process_submission.hpp"
#include "intercept/runtime/process_timers.hpp"

namespace contextune::intercept {

namespace {

void forget_streams_of_call() noexcept {
  if (TunableCall* const call = this_thread().call) TunableLaunch::forget_streams(*call);
}

}  // namespace

void DestroyedHandles::stream_goes_away(CUstream stream) noexcept {
  forget_streams_of_call();
  submission_.forget_stream(stream);
  services_.captures.end(stream);
  services_.recorder.obstruct(FallbackReason::ReplayAllocation, "The region destroys a stream.",
                              true);
  services_.graphs.forget_stream(stream);
  for (LaunchRegion* region : regions_.all()) region->forget_stream(stream);
}

void DestroyedHandles::context_goes_away(CUcontext context, bool gone) noexcept {
  forget_streams_of_call();
  submission_.forget_context(context);
  services_.variables.context_goes_away(context);
  if (context == nullptr) return;
  services_.contexts.gone(context);
  services_.graphs.forget_context(context, gone);
  // Regions may find out no more than this. Where contexts come and go by the thousand, every
  // doubling of their number is enough.
  const bool is_told = std::has_single_bit(++contexts_gone_) && !services_.stopped.load();
  for (LaunchRegion* region : regions_.all()) {
    region->forget_context(context, gone);
    if (is_told) region->write_summary();
  }
  timers_.forget_context(context);
}

void DestroyedHandles::primary_context_goes_away(CUdevice device) noexcept {
  const CUcontext context = services_.contexts.primary_of(device);
  context_goes_away(context);
  services_.contexts.made(context, device);  // a reset one is there all the same
  services_.memory.forget_device(device, context);
}

void DestroyedHandles::primary_context_released(CUdevice device) noexcept {
  // Only the driver knows who else holds it.
  unsigned flags = 0;
  int active = 0;
  if (services_.driver.cuDevicePrimaryCtxGetState != nullptr &&
      services_.driver.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS &&
      active != 0)
    return;
  const CUcontext context = services_.contexts.primary_of(device);
  context_goes_away(context, true);
  services_.memory.forget_device(device, context);
}

}  // namespace contextune::intercept
