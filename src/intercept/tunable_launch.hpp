#pragma once

#include "intercept/launch_region.hpp"

namespace contextune::intercept {

/// Launches that a tunable's own code makes: they run as written and are timed as the call's work.
struct TunableLaunch {
  [[nodiscard]] static bool belongs_to(const TunableCall& tunable,
                                       const LaunchRegion* region) noexcept;
  [[nodiscard]] static CUresult issue(TunableCall& tunable, const contextune_launch& call,
                                      const Launch& launch,
                                      const RegionServices& services) noexcept;
};

}  // namespace contextune::intercept
