#include "cli/region_mode.hpp"

#include <algorithm>

#include "core/fallback_reason.hpp"

namespace contextune::cli {
namespace {

// Of a whole region: why its work is not repeated, neither by its body nor by replay.
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

RegionMode region_mode(const log::ProcessReport& process, const log::RegionReport& region) {
  if (!region.replays.empty()) return {"replay", nullptr};
  if (process.mode == "live") return {"live", nullptr};
  // Early visits may be declined for a while; what counts is the reason that stayed.
  const auto why = std::find_if(process.fallbacks.rbegin(), process.fallbacks.rend(),
                                [&](const log::FallbackReport& f) {
                                  const FallbackInfo* info = find_fallback(f.reason);
                                  return f.region == region.name && f.site.empty() &&
                                         info != nullptr && explains_live(info->reason);
                                });
  if (why != process.fallbacks.rend()) return {"live", &*why};
  return {};
}

}  // namespace contextune::cli
