#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/search/experiment.hpp"
#include "core/search/race.hpp"
#include "core/search/refine.hpp"
#include "core/search/tuning_sites.hpp"

namespace contextune {

/// The refine stage of a generation: which of its sites are worth passes of the whole region, with
/// which configs, and what Refine finds for them. The options and the sites must outlive it.
class Refinement {
 public:
  Refinement(const TuningOptions& options, TuningSites& sites);

  /// The generation's table is through.
  /// @param by_span its passes are timed without CUPTI, whatever the sites are
  /// @return false: no site has a choice that is worth it
  [[nodiscard]] bool start(bool by_span, const NoisePrior& noise);
  /// Starts the next passes.
  /// @return false: there are none, it is through
  [[nodiscard]] bool start_next(Experiment& experiment);
  /// Takes one sample for each of those passes.
  void complete(std::span<const RegionSample> samples) { refine_->complete(samples); }
  /// A config can no longer be launched.
  void exclude(SiteIndex index, std::uint32_t config);
  /// Sites get the best that was found so far.
  void finish();

  /// How its passes are timed.
  [[nodiscard]] Measure measure() const { return measure_; }
  /// Whether the last one was about that site.
  [[nodiscard]] bool compared(SiteIndex index) const;

 private:
  [[nodiscard]] std::vector<std::uint32_t> candidates_of(const TuningSite& site) const;

  const TuningOptions& options_;
  TuningSites& sites_;
  std::vector<SiteIndex> refined_;  ///< by position in refine_
  std::optional<Refine> refine_;
  Measure measure_ = Measure::Activity;
  bool first_after_cupti_ = false;
};

}  // namespace contextune
