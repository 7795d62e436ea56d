#include "cli/region_mode.hpp"

#include <algorithm>

#include "core/fallback_reason.hpp"

namespace contextune::cli {
namespace {

// Of a whole region: why its work is not repeated, neither by its body nor by replay.
bool explains_live(FallbackReason reason) {
  const bool declines_replay =
      reason >= FallbackReason::ReplayMemory && reason <= FallbackReason::ReplayFailed;
  return declines_replay || reason == FallbackReason::NotRepeatable ||
         reason == FallbackReason::Capture;
}

}  // namespace

RegionMode region_mode(const log::ProcessReport& process, const log::RegionReport& region) {
  if (!region.replays.empty()) return {"replay", nullptr};
  // Early visits may be declined for a while; what counts is the reason that stayed.
  const auto why = std::find_if(process.fallbacks.rbegin(), process.fallbacks.rend(),
                                [&](const log::FallbackReport& f) {
                                  const FallbackInfo* info = find_fallback(f.reason);
                                  return f.region == region.name && f.site.empty() &&
                                         info != nullptr && explains_live(info->reason);
                                });
  if (why != process.fallbacks.rend()) return {"live", &*why};
  return {process.mode == "live" ? "live" : "", nullptr};
}

}  // namespace contextune::cli
