#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/search/confirmation.hpp"
#include "core/search/experiment.hpp"
#include "core/search/pending_passes.hpp"
#include "core/search/refinement.hpp"
#include "core/search/region_baseline.hpp"
#include "core/search/tuning.hpp"
#include "core/search/tuning_budget.hpp"
#include "core/search/tuning_sites.hpp"

namespace contextune {

/// The state behind Tuning; see there. tuning_engine.cpp holds entries and results,
/// tuning_failures.cpp what is given up, tuning_stages.cpp what follows from them,
/// tuning_stored.cpp what is known before.
class Tuning::Engine {
 public:
  Engine(const TuningOptions& options, TuningObserver& observer);

  SiteIndex add_site(SiteSpec spec);
  void site_ready(SiteIndex index, std::span<const std::uint32_t> unusable);
  void site_stored(SiteIndex index, const StoredWinner& stored);
  void site_suspected(SiteIndex index, const Suspicions& suspicions);
  void reject_config(SiteIndex index, std::uint32_t config, const std::string& detail,
                     Rejection why);
  void keep_default(SiteIndex index);
  PassPlan begin_pass(PassId id, double now, bool bounded);
  void hold_passes(bool held) { held_ = held; }
  void end_pass(PassId id, std::span<const SiteIndex> launched, std::span<const SiteIndex> failed,
                double now);
  void add_result(const PassResult& result, double now);
  void spend(double seconds, std::optional<PassId> id) {
    if (!id || pending_.contains(*id)) budget_.charge(seconds);
  }
  void overrun(double now);

  [[nodiscard]] bool finished() const;
  [[nodiscard]] std::span<const std::uint32_t> winners() const { return sites_.winners(); }
  [[nodiscard]] const TuningSites& sites() const { return sites_; }
  [[nodiscard]] TuningProgress progress() const {
    return {stage_, budget_.passes(), entries_, budget_.clock().seconds(stage_ == Stage::Finished)};
  }

 private:
  // tuning_engine.cpp
  void plan_trials(PendingPass& pass);
  void settle_trials(const PendingPass& pass, const PassResult* result);
  void report_trial(const PlannedTrial& trial, const SiteResult* seen, const PassResult* result,
                    std::uint64_t number, bool counts);
  void settle_experiment(const PendingPass& pass, const PassResult* result);
  void resolve(const PendingPass& pass, const PassResult* result);
  void abandon_open_pass();

  // tuning_failures.cpp
  void fail_config(SiteIndex index, std::uint32_t config, int iteration);
  /// @param seen has failed, in that pass
  void fail_as_seen(const SiteResult& seen, std::uint32_t config, int iteration,
                    std::uint64_t number);
  /// @param why for the site's next search, if there is one
  /// @return false: that was known, or it is the default
  bool give_up_config(SiteIndex index, std::uint32_t config,
                      TrialStatus why = TrialStatus::LaunchFailed);
  /// @param seconds NaN: it has not ended
  void time_out(SiteIndex index, std::uint32_t config, int iteration, double seconds);
  /// The sites and configs that pending passes try, of which no result has come before.
  [[nodiscard]] std::vector<std::pair<SiteIndex, std::uint32_t>> under_way() const;
  [[nodiscard]] static double took(const SiteResult& seen);
  [[nodiscard]] bool took_too_long(const SiteResult& seen) const;
  void give_up_waiting();

  // tuning_stages.cpp
  void advance();
  /// Passes with a config that has failed since they were planned are not run.
  void skip_failed_slots();
  void take_in(SiteIndex index);
  void admit(SiteIndex index);
  [[nodiscard]] bool generation_is_open() const;
  bool start_generation();
  [[nodiscard]] bool wants_generation(const TuningSite& site) const;
  void settle_sites(bool even_unfinished);
  [[nodiscard]] bool table_has_work() const;
  /// Whether a site waits for results: it has run its last trial, or its schedule looks at samples.
  [[nodiscard]] bool a_site_waits() const;
  void enter(Stage stage);
  void finish_table();
  void start_confirm();
  void finish_refine();
  void finish_confirm();
  void finish_generation();
  [[nodiscard]] NoisePrior region_noise() const;

  // tuning_stored.cpp
  void take_stored(SiteIndex index);
  /// Whether the store settles all sites that are ready.
  [[nodiscard]] bool store_settles_all() const;
  void take_suspicions(SiteIndex index);
  void settle_suspect(const PendingPass& pass);
  /// A suspect is one no longer, or will not be tried.
  void leave_suspect(SiteIndex index, bool survived);
  void give_up_suspects();
  /// Sites whose stored winners were not shown to be faster again form the next generation.
  void tune_anew();

  TuningOptions options_;
  TuningObserver& observer_;
  TuningSites sites_;
  TuningBudget budget_;

  Stage stage_ = Stage::Table;
  bool bounded_ = true;  ///< the program makes the entries
  bool held_ = false;    ///< passes that are compared are
  Refinement refinement_;
  Confirmation confirmation_;
  Experiment experiment_;  ///< of either

  std::deque<SuspectConfig> suspects_;  ///< of this generation, before its table
  PendingPasses pending_;
  std::vector<std::uint32_t> plan_;
  std::uint64_t entries_ = 0;
  RegionBaseline baseline_;
};

}  // namespace contextune
