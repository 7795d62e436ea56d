#include "intercept/runtime/nccl_calls.hpp"

#include <exception>
#include <string>
#include <utility>

#include "intercept/collectives/process_collectives.hpp"
#include "intercept/collectives/region_collectives.hpp"
#include "intercept/marks/open_regions.hpp"
#include "intercept/nccl/nccl_caller.hpp"
#include "intercept/program/capture_watch.hpp"
#include "intercept/ranks/process_ranks.hpp"
#include "intercept/recording/recorder.hpp"
#include "intercept/site/launch_region.hpp"
#include "intercept/submission/stored_submission.hpp"

namespace contextune::intercept {
namespace {

constexpr const char* found_collectives = "auto:collectives";

void note_use(const contextune_nccl_call& call, LaunchRegion* region) noexcept {
  const bool communicates =
      call.kind == contextune_nccl_collective || call.kind == contextune_nccl_point_to_point;
  if (communicates && region != nullptr && region->collectives() != nullptr)
    region->collectives()->note_used(call.comm);
}

/// The region whose site the call is; null: none's. An implementation of a choice is judged as a
/// whole. A site of its own in there would be searched on a path that the next config may not take,
/// and each rank would have to be on it for the very same decisions.
LaunchRegion* counted_in(LaunchRegion* region) noexcept {
  const TunableCall* const tunable = this_thread().call;
  return tunable != nullptr && tunable->is_span() ? nullptr : region;
}

}  // namespace

void NcclCalls::find_stretch(const Options& options, std::function<void()> measures) noexcept {
  if (!options.auto_knobs.collectives || !regions_.has_mark(RegionMark::Kind::Auto) ||
      regions_.has_marked_stretch() || options.discover) {
    return;
  }
  const auto make = [this, &options](const UnansweredRuns& runs) -> LaunchRegion* {
    try {
      if (runs.are_enough()) {
        services_.log.fallback(
            FallbackReason::NotSettled, found_collectives, {},
            "The program's runs are too short to compare its collectives: several ended "
            "before there was an answer, so collectives keep NCCL's default.");
        return nullptr;
      }
      Options live = options;
      live.mode = Mode::Live;  // nobody has named it
      return &regions_.find_or_make(found_collectives, live,
                                    ProcessRegions::Kind::FoundCollectives);
    } catch (const std::exception& error) {
      services_.log.fallback(FallbackReason::InternalError, StoredSubmission::region, {},
                             error.what());
      return nullptr;
    }
  };
  found_.start(make, std::move(measures), services_.store, services_.gate);
}

void NcclCalls::report_few() const noexcept {
  const std::uint64_t repeated = found_.most_repeated();
  if (repeated == 0 || repeated == FoundCollectives::least_repeated) return;
  try {
    services_.log.fallback(FallbackReason::NothingRepeats, found_collectives, {},
                           "The stretch of collectives that came most often came to " +
                               std::to_string(repeated) + " of them. They are compared from " +
                               std::to_string(FoundCollectives::least_repeated) +
                               " on, so they keep NCCL's default.");
  } catch (const std::exception&) {
    // No memory: not said, then.
  }
}

bool NcclCalls::repeats(const contextune_nccl_call& call) noexcept {
  ThreadState& thread = this_thread();
  if (thread.call != nullptr && (!thread.call->is_span() || services_.recorder.active()))
    return false;
  LaunchRegion* const region = region_of(thread);
  if (!process_collectives().begin_settled(call, counted_in(region), thread.collectives))
    return false;
  // Other settled calls are in no region, or in one that is finished and looks at nothing.
  if (thread.call != nullptr) note_use(call, region);
  return true;
}

void NcclCalls::begins(const contextune_nccl_call& call) noexcept {
  threads_.before(call);
  const ThreadState& thread = this_thread();
  LaunchRegion* const region = region_of(thread);
  note_use(call, region);
  const bool counts = thread.region == nullptr || thread.counts;
  const bool captured =
      services_.captures.possible() && services_.captures.is_capturing(call.stream);
  find_nccl_code(call);
  if (services_.recorder.active()) services_.recorder.nccl_begins(call);
  services_.ranks.nccl_begins(call);
  process_collectives().begin(call, counted_in(region), counts, captured);
}

void NcclCalls::ends(const contextune_nccl_call& call) noexcept {
  const TunableCall* const tunable = this_thread().call;
  const bool may_settle = !services_.captures.possible() && !services_.recorder.active() &&
                          (tunable == nullptr || tunable->is_span());
  process_collectives().end(call, may_settle, !services_.open.watches_always());
  if (services_.recorder.active()) services_.recorder.nccl_ended(call);
  threads_.after(call);
}

void NcclCalls::join_ranks(const contextune_nccl_call& call) noexcept {
  services_.ranks.nccl_ended(call, regions_.has_marked_stretch() || found_.looks());
}

LaunchRegion* NcclCalls::region_of(const ThreadState& thread) const noexcept {
  if (thread.region != nullptr) return thread.region;
  LaunchRegion* const only = services_.open.only();
  if (only != nullptr && only->collectives() != nullptr) return only;
  LaunchRegion* const found = found_.open_region();
  return found != nullptr ? found : only;
}

}  // namespace contextune::intercept
