#pragma once

#include "intercept/site/launch_region.hpp"

namespace contextune::intercept {

/// Launches that a tunable's own code makes: they run as written and are timed as the call's work.
struct TunableLaunch {
  [[nodiscard]] static bool belongs_to(const TunableCall& tunable,
                                       const LaunchRegion* region) noexcept;
  [[nodiscard]] static CUresult issue(TunableCall& tunable, const contextune_launch& call,
                                      const Launch& launch,
                                      const RegionServices& services) noexcept;
  /// Its thread destroys a stream or a context, and another one may get the handle.
  static void forget_streams(TunableCall& tunable) noexcept;
  /// It holds work that is not timed.
  static void cannot_time(TunableCall& tunable) noexcept;
  /// The same of a copy or a fill, which only calls that are timed as a span are asked about: it is
  /// about to be made by their thread, and was.
  static void transfer_begins(TunableCall& tunable, contextune_fn fn, void* const* args) noexcept;
  static void transfer_ended(TunableCall& tunable, contextune_fn fn, void* const* args,
                             bool made) noexcept;
};

}  // namespace contextune::intercept
