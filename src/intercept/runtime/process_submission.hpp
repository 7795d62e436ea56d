#pragma once

#include <atomic>

#include "intercept/graphs/chained_graphs.hpp"
#include "intercept/host/name_filter.hpp"
#include "intercept/site/launch_region.hpp"
#include "intercept/site/region_services.hpp"
#include "intercept/submission/discovered_periods.hpp"
#include "intercept/submission/submission_tuning.hpp"
#include "intercept/submit/spliced_loads.hpp"
#include "intercept/submit/submitter.hpp"

namespace contextune::intercept {

/// How launches of this process that belong to no region reach the driver: code with waits, chains,
/// batches, and the tuning that chooses among them. Any thread; nothing throws but the constructor.
class ProcessSubmission {
 public:
  /// @param services, `filter` and `options` outlive it
  ProcessSubmission(const RegionServices& services, const NameFilter& filter,
                    const Options& options);

  /// Begins with what the options say: pinned, tuned, or only looked at.
  /// @param finds_regions whether a launch that no mark claims may be part of a found region
  void start(bool finds_regions) noexcept;

  [[nodiscard]] SplicedLoads& loads() noexcept { return loads_; }
  [[nodiscard]] ChainedGraphs& graphs() noexcept { return graphs_; }
  [[nodiscard]] Submitter& submitter() noexcept { return submitter_; }
  [[nodiscard]] SubmissionTuning& tuning() noexcept { return tuning_; }
  /// Null, unless the program is only looked at.
  [[nodiscard]] DiscoveredPeriods* periods() noexcept { return discovers_ ? &periods_ : nullptr; }

  /// Before another call of the driver than a launch, while something is held.
  void hand_over(contextune_fn fn) noexcept;
  /// A launch belongs to the region: the user's pin does not count for it, which is said once.
  void say_pin_does_not_act(const LaunchRegion& region) noexcept;
  void forget_kernels() noexcept;
  /// Before a stream is destroyed.
  void forget_stream(CUstream stream) noexcept;
  /// Before a context is destroyed.
  void forget_context(CUcontext context) noexcept;

 private:
  [[nodiscard]] bool launches_block() noexcept;

  const RegionServices& services_;
  const Options& options_;
  SplicedLoads loads_;
  SubmittedKernels kernels_;
  ChainedGraphs graphs_;
  Submitter submitter_;
  SubmissionTuning tuning_;
  DiscoveredPeriods periods_;
  bool discovers_ = false;
  std::atomic<bool> said_pin_{false};
};

}  // namespace contextune::intercept
