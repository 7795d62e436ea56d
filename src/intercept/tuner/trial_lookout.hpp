#pragma once

#include <atomic>

#include "intercept/program/trial_watch.hpp"
#include "intercept/site/launch_region.hpp"
#include "intercept/tuner/search.hpp"

namespace contextune::intercept {

/// Has the trials of one search looked after as long as they are in flight, and says so where the
/// GPU does not get through with them. A part of the region that has the search.
class TrialLookout final : public TrialWatch::Watched {
 public:
  TrialLookout(Search& search, const RegionServices& services, double trial_timeout)
      : search_(search), services_(services), trial_timeout_(trial_timeout) {}

  /// The search may have begun trials, in the current context. Waits for nobody.
  /// @param region that this is a part of
  void begin(LaunchRegion& region) noexcept;

  /// Asks nothing of that context any more, which goes away.
  void forget_context(CUcontext context) noexcept {
    context_.compare_exchange_strong(context, nullptr);
  }

  [[nodiscard]] double look() noexcept override;

 private:
  Search& search_;
  const RegionServices& services_;
  const double trial_timeout_;
  std::atomic<bool> watched_{false};
  std::atomic<CUcontext> context_{nullptr};
};

}  // namespace contextune::intercept
