#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/search/region_tuning.hpp"
#include "core/value/tuning_options.hpp"

namespace contextune {

/// The search in one region, decided here: through table, refine and confirm. Deterministic: a
/// function of the calls made to it; it never looks at a clock.
///
/// Sites of one generation go through the stages together. A site that is ready takes part in the
/// very pass in which it appears, with config 0. Sites that first appear after 16 passes of a
/// generation, or while it is past its table, run their default meanwhile. They form the next
/// generation once they were launched in two passes.
///
/// Owns copies of all that it is given but the observer, which must outlive it.
class Tuning final : public RegionTuning {
 public:
  /// @param observer may not be null
  Tuning(const TuningOptions& options, TuningObserver* observer);
  ~Tuning() override;
  Tuning(const Tuning&) = delete;
  Tuning& operator=(const Tuning&) = delete;

  SiteIndex add_site(SiteSpec spec) override;
  void site_ready(SiteIndex site, std::span<const std::uint32_t> unusable = {}) override;
  /// Takes an earlier run's findings about a site that is not ready yet.
  void site_stored(SiteIndex site, const StoredWinner& stored);
  void site_suspected(SiteIndex site, const Suspicions& suspicions);
  void reject_config(SiteIndex site, std::uint32_t config, const std::string& detail,
                     Rejection why = Rejection::Wrong) override;
  /// A ready site's other configs cannot be run any more, for no fault of theirs. Nothing more is
  /// said of them, and the site's known config is no winner to be kept.
  void keep_default(SiteIndex site);
  [[nodiscard]] PassPlan begin_pass(PassId pass, double now, bool bounded = true) override;
  void hold_passes(bool held) override;
  void end_pass(PassId pass, std::span<const SiteIndex> launched, std::span<const SiteIndex> failed,
                double now) override;
  void add_result(const PassResult& result, double now) override;
  void overrun(double now) override;
  void spend(double seconds, std::optional<PassId> pass = std::nullopt) override;
  [[nodiscard]] bool finished() const override;
  [[nodiscard]] std::span<const std::uint32_t> winners() const override;
  [[nodiscard]] TuningProgress progress() const override;
  [[nodiscard]] TuningRanks& ranks() override { return alone_; }

  [[nodiscard]] std::size_t num_sites() const;

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
  TuningRanks alone_;
};

}  // namespace contextune
