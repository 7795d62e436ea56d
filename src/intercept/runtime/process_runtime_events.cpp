// Events of the process as a whole: things go away, break, end.
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

void ProcessRuntime::synchronised() noexcept {
  if (regions_.has_process() && !ProcessCollectives::is_inside())
    timers_.measurement().cupti().release_when_idle();
  if (submission_.tuning().watches()) submission_.tuning().results_may_be_there();
  regions_.work_was_waited_for();
  if (!options_.discover || stopped_.load(std::memory_order_acquire)) return;
  for (LaunchRegion* region : regions_.all()) region->synchronised();
}

void ProcessRuntime::program_uses_cupti(const char* entry_point) noexcept {
  try {
    if (stopped_.load(std::memory_order_acquire)) return;
    submission_.submitter().stop();  // a profiler has to see every launch by itself
    timers_.measurement().give_up_cupti(entry_point);
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
  // The thread that ends a hold writes to memory of the driver's.
  if (!is_in_signal_handler())
    for (LaunchRegion* region : regions_.all()) region->let_go();
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
  // The code that the handler interrupted may hold the locks of malloc, and never lets them go.
  // Nothing more is said then, as of a process that is killed.
  if (is_in_signal_handler()) return log_.lines().flush_in_signal_handler();
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
  nccl_.report_few();
  store_.finish(ProcessStore::most_saving_seconds);
  store_.journal().close();
  timers_.measurement().cupti().say_what_stays();
  forced_.report_unmatched();
  try {
    if (!options_.discover) report_unmatched_names(options_, kernels_, rules_, log_);
  } catch (const std::exception&) {  // no memory
  }
  std::uint64_t outside = launches_.unassigned();
  if (frontend_ != nullptr) outside += frontend_->launches_passed();
  log::write_exit(log_.lines(), outside, log_.simulated());
}

}  // namespace contextune::intercept
