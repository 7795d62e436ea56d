#include "cli/report/region_mode.hpp"

#include "core/value/fallback_reason.hpp"

namespace contextune::cli {
namespace {

// Whether the reason explains, for a whole region, why its work is not repeated, neither by its
// body nor by replay.
bool explains_live(FallbackReason reason) {
  const bool declines_replay =
      reason >= FallbackReason::ReplayMemory && reason <= FallbackReason::ReplayFailed;
  // These are also said of single launches, but then of a site.
  const bool declines_recording = reason == FallbackReason::Capture ||
                                  reason == FallbackReason::UnsupportedLaunch ||
                                  reason == FallbackReason::UnknownKernel;
  return declines_replay || declines_recording || reason == FallbackReason::NotRepeatable;
}

}  // namespace

RegionModes::RegionModes(const log::ProcessReport& process) : asked_live_(process.mode == "live") {
  for (const log::FallbackReport& fallback : process.fallbacks) {
    const FallbackInfo* const info = find_fallback(fallback.reason);
    // Early visits may be declined for a while; what counts is the reason that stayed.
    if (fallback.site.empty() && info != nullptr && explains_live(info->reason))
      why_live_[fallback.region] = &fallback;
  }
}

RegionMode RegionModes::of(const log::RegionReport& region) const {
  if (!region.replays.empty()) return {"replay", nullptr};
  if (asked_live_) return {"live", nullptr};
  const auto why = why_live_.find(region.name);
  return why == why_live_.end() ? RegionMode{} : RegionMode{"live", why->second};
}

}  // namespace contextune::cli
