#pragma once

#include <cstdint>
#include <vector>

#include "core/search/schedule.hpp"
#include "core/trials/trial.hpp"

namespace contextune {

/// Progress of one site through its trials: its schedule, then once more whatever got no sample.
/// Belongs to one (site, key). Not thread-safe.
class SiteProgress {
 public:
  /// @param cutoff a config whose every sample is slower than the best by this factor is given up;
  ///        0: never
  SiteProgress(const ScheduleShape& shape, ScheduleKind schedule, double cutoff);

  /// The step that the next pass tries.
  [[nodiscard]] Step next() const;

  /// The config that a pass really runs for that step: the default once the step's config is given
  /// up.
  [[nodiscard]] std::uint32_t runs(const Step& step) const;

  /// The site was launched in the pass that was planned with this step. A result, or word that none
  /// comes, is owed now.
  void launched(const Step& step);

  /// The config could not be launched, then or at any other time, or computes something wrong.
  void fail(std::uint32_t config, int iteration, TrialStatus why = TrialStatus::LaunchFailed);

  /// The same before the first step: it takes no passes.
  void exclude(std::uint32_t config, TrialStatus why);

  /// Takes the result that is owed for a step: seconds, or NaN for none.
  void result(const Step& step, double seconds);

  [[nodiscard]] bool finished() const { return next().kind == Step::Kind::Finished; }
  [[nodiscard]] const std::vector<Trial>& trials() const { return trials_; }

 private:
  [[nodiscard]] Step retry_step() const;
  void queue_retries();
  void cut_off_if_hopeless(std::uint32_t config, int iteration);

  ScheduleShape shape_;
  const Schedule& schedule_;
  double cutoff_;
  std::vector<Trial> trials_;
  std::vector<double> levels_;  ///< medians of what was measured of each; NaN: nothing
  std::uint64_t p_ = 0;
  std::uint64_t owed_ = 0;
  bool scheduled_ = true;  ///< still in the schedule, not among the retries
  std::vector<std::uint32_t> retries_;
  std::uint64_t retry_p_ = 0;
};

}  // namespace contextune
