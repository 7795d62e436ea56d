// Events of the process as a whole: things go away, break, end.
#include <bit>
#include <exception>

#include "gpu/driver/process_exit.hpp"
#include "intercept/collectives/process_collectives.hpp"
#include "intercept/host/signal_frame.hpp"
#include "intercept/runtime/process_runtime.hpp"
#include "intercept/runtime/unmatched_names.hpp"
#include "log/events.hpp"

namespace contextune::intercept {
namespace {

// For which the end of the program waits for a replay, which itself looks whether it is to end
// after every pass.
constexpr double most_end_seconds = 2;

}  // namespace

void ProcessRuntime::stream_goes_away(CUstream stream) noexcept {
  submission_.forget_stream(stream);
  captures_.end(stream);
  recorder_.obstruct(FallbackReason::ReplayAllocation, "The region destroys a stream.", true);
  graphs_.forget_stream(stream);
  for (LaunchRegion* region : regions_.all()) region->forget_stream(stream);
}

void ProcessRuntime::context_goes_away(CUcontext context, bool gone) noexcept {
  submission_.forget_context(context);
  module_variables_.context_goes_away(context);
  if (context == nullptr) return;
  contexts_.gone(context);
  graphs_.forget_context(context, gone);
  // Regions may find out no more than this. Where contexts come and go by the thousand, every
  // doubling of their number is enough.
  const bool is_told = std::has_single_bit(++contexts_gone_) && !stopped_.load();
  for (LaunchRegion* region : regions_.all()) {
    region->forget_context(context, gone);
    if (is_told) region->write_summary();
  }
  events_->forget_context(context);
}

void ProcessRuntime::primary_context_goes_away(CUdevice device) noexcept {
  const CUcontext context = contexts_.primary_of(device);
  context_goes_away(context);
  contexts_.made(context, device);  // a reset one is there all the same
  memory_.forget_device(device, context);
}

void ProcessRuntime::primary_context_released(CUdevice device) noexcept {
  // Only the driver knows who else holds it.
  unsigned flags = 0;
  int active = 0;
  if (driver_.cuDevicePrimaryCtxGetState != nullptr &&
      driver_.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && active != 0)
    return;
  const CUcontext context = contexts_.primary_of(device);
  context_goes_away(context, true);
  memory_.forget_device(device, context);
}

void ProcessRuntime::synchronised() noexcept {
  if (is_one_region_ && !ProcessCollectives::is_inside()) measurement_.cupti().release_when_idle();
  if (submission_.tuning().watches()) submission_.tuning().results_may_be_there();
  work_was_waited_for();
  if (!options_.discover || stopped_.load(std::memory_order_acquire)) return;
  for (LaunchRegion* region : regions_.all()) region->synchronised();
}

void ProcessRuntime::work_was_waited_for() noexcept {
  if (!store_.any_on_probation() || stopped_.load(std::memory_order_acquire)) return;
  for (LaunchRegion* region : regions_.all()) region->check_probation();
}

void ProcessRuntime::unsupported_launch(const char* entry_point) noexcept {
  try {
    if (current_region() == nullptr) return;
    log_.fallback(FallbackReason::UnsupportedLaunch, current_region()->name(), {},
                  std::string("A launch by ") + entry_point + " runs as the program wrote it.");
  } catch (const std::exception&) {
    // Not said, then.
  }
}

void ProcessRuntime::program_uses_cupti(const char* entry_point) noexcept {
  try {
    if (stopped_.load(std::memory_order_acquire)) return;
    submission_.submitter().stop();  // a profiler has to see every launch by itself
    measurement_.give_up_cupti(entry_point);
  } catch (const std::exception& error) {
    log_.fallback(FallbackReason::InternalError, {}, {}, error.what());
  }
}

void ProcessRuntime::broke(CUresult result) noexcept {
  if (stopped_.exchange(true)) return;
  submission_.submitter().stop();
  store_.journal().broke();
  settled_changed();
  open_.shut();
  try {
    log_.fallback(FallbackReason::StickyError, {}, {},
                  "A call answered " + gpu::describe(driver_, result) +
                      "; nothing is tuned any more in this process.");
    log_.lines().flush();  // the program may end at once
  } catch (const std::exception&) {
    // Not said, then.
  }
}

bool ProcessRuntime::is_inside() const noexcept {
  return frontend_ != nullptr && frontend_->depth != nullptr && *frontend_->depth() != 0;
}

void ProcessRuntime::end_replays() noexcept {
  stopped_.store(true);  // before the look at the gate, which a replay closes before it looks here
  settled_changed();
  // CUPTI and the driver end next. Under a replay that crashes, and what the program's own handlers
  // may still look at would not be put back.
  if (is_inside() || waited_in_vain_) return;
  submission_.tuning().finish();
  submission_.submitter().stop();
  const char* under_way = nullptr;
  FallbackReason reason = FallbackReason::ReplayFailed;
  if (!gate_.opens_within(most_end_seconds)) {
    under_way = "The program ends, and a replay was still under way after 2 s.";
  } else if (!gpu::library_calls_end_within(most_end_seconds)) {
    reason = FallbackReason::NoCupti;
    under_way = "The program ends, and a call of CUPTI was still under way after 2 s.";
  }
  if (under_way == nullptr) return;
  waited_in_vain_ = true;
  if (is_in_signal_handler()) return;  // it takes memory
  log_.fallback(reason, {}, {}, under_way);
  log_.lines().flush();
}

void ProcessRuntime::write_discovered(DiscoveredPeriods& periods) noexcept {
  try {
    for (const FoundRegion& found : periods.found())
      log::write_period(log_.lines(), StoredSubmission::region, text_of(found), log_.simulated());
    if (const std::string ranges = regions_.other_ranges(); !ranges.empty())
      log::write_ranges(log_.lines(), StoredSubmission::region, ranges);
  } catch (const std::exception&) {
    // No memory: not said, then.
  }
}

void ProcessRuntime::exiting() noexcept {
  end_replays();
  // From a signal handler that interrupted us: this thread itself may hold our locks.
  if (is_inside()) return;
  open_.shut();
  builds_.stop();
  regions_.report_never_entered();
  const auto regions = regions_.all();
  if (regions_.marks().empty() && regions.empty()) {
    log_.fallback(FallbackReason::RegionNeverEntered, {}, {},
                  "CONTEXTUNE_REGION names no region and the program's code entered none.");
  }
  if (DiscoveredPeriods* periods = submission_.periods()) write_discovered(*periods);
  for (LaunchRegion* region : regions) {
    if (region->entries().is_first_open())
      log_.fallback(FallbackReason::RegionNeverLeft, region->name(), {}, {});
    region->write_summary();
  }
  store_.journal().close();
  measurement_.cupti().say_what_stays();
  forced_.report_unmatched();
  try {
    if (!options_.discover) report_unmatched_names(options_, kernels_, rules_, log_);
  } catch (const std::exception&) {  // no memory
  }
  std::uint64_t outside = unassigned_.load(std::memory_order_relaxed);
  if (frontend_ != nullptr) outside += frontend_->launches_passed();
  log::write_exit(log_.lines(), outside, log_.simulated());
}

}  // namespace contextune::intercept
