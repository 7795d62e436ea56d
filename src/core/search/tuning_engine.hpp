#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/search/confirm.hpp"
#include "core/search/experiment.hpp"
#include "core/search/refine.hpp"
#include "core/search/region_baseline.hpp"
#include "core/search/selection.hpp"
#include "core/search/site_progress.hpp"
#include "core/search/tuning.hpp"

namespace contextune {

/// A site that starts a generation of its own must have been there twice: a key that changes every
/// time would otherwise keep the tuning going for ever.
inline constexpr std::uint64_t launches_to_count = 2;

/// The engine's knowledge of one site. Plain data.
struct TuningSite {
  SiteSpec spec;
  bool ready = true;
  std::optional<SiteProgress> progress;  ///< once admitted with something to try
  std::optional<std::uint32_t> generation;
  bool trivial = false;     ///< nothing to try: one config, pinned, known or kept
  bool settled = false;     ///< known and reason are what the table chose
  bool suspected = false;   ///< its stored winner is, and runs once survived alone
  std::uint32_t known = 0;  ///< runs this when nothing is tried
  WinnerReason reason = WinnerReason::NoSamples;
  std::set<std::uint32_t> failed;  ///< configs that could not be launched or built, or are wrong
  std::set<std::uint32_t> wrong;   ///< those among them that were rejected
  std::set<std::uint32_t> uncompared;  ///< those among them that may be wrong
  std::set<std::uint32_t> crashed;     ///< those among them that are blamed
  std::vector<double> idle_samples;    ///< of trivial sites and of the default of Objective::Region
  std::uint64_t last_launched = 0;     ///< pass of its generation
  std::uint64_t times_launched = 0;    ///< entries
  std::uint32_t launches = 1;          ///< in a pass, as last seen
  bool in_pieces = false;              ///< as SiteResult says, with one of its configs

  /// The config that it has to beat: the one that an earlier run has shown to be worth it, else the
  /// default.
  [[nodiscard]] std::uint32_t base() const {
    return spec.stored && !holds_back() && !failed.contains(spec.stored->config)
               ? spec.stored->config
               : 0;
  }
  /// Its stored winner does not run unless it is what is tried.
  [[nodiscard]] bool holds_back() const {
    return suspected || (spec.stored && spec.stored->needs_confirm);
  }
  /// Back to that.
  void drop_to_base() {
    known = base();
    reason = known != 0 ? WinnerReason::Stored : WinnerReason::Dropped;
  }
  /// An earlier run's winner is all that it runs, or has to show to be worth it.
  [[nodiscard]] bool is_stored() const { return spec.stored && spec.stored->untried.empty(); }
};

/// The state behind Tuning; see there. tuning_engine.cpp holds entries and results,
/// tuning_failures.cpp what is given up, tuning_stages.cpp what follows from them,
/// tuning_stored.cpp what is known before, tuning_experiments.cpp refine and confirm.
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
  void end_pass(PassId id, std::span<const SiteIndex> launched, std::span<const SiteIndex> failed,
                double now);
  void add_result(const PassResult& result, double now);
  void spend(double seconds, std::optional<PassId> id) {
    if (!id || pending_.contains(*id)) trials_cost_ += seconds;
  }
  void overrun(double now);

  [[nodiscard]] bool finished() const;
  [[nodiscard]] std::span<const std::uint32_t> winners() const { return winners_; }
  [[nodiscard]] const std::vector<TuningSite>& sites() const { return sites_; }
  [[nodiscard]] TuningProgress progress() const {
    return {stage_, passes_, entries_, tuning_seconds()};
  }

 private:
  struct PlannedTrial {
    SiteIndex site = 0;
    Step step;
    std::uint32_t runs = 0;
    bool failed = false;
  };
  /// A config that is to be tried alone.
  struct Suspect {
    SiteIndex site = 0;
    std::uint32_t config = 0;
    std::uint64_t passes = 0;  ///< in which its site was not launched
  };
  /// A counted pass whose result has not come.
  struct PendingPass {
    std::uint64_t number = 0;  ///< among the counted ones
    Stage stage = Stage::Table;
    Measure measure = Measure::Nothing;
    bool ended = false;
    std::vector<PlannedTrial> trials;
    std::vector<std::uint32_t> configs;  ///< as run, by site
    std::vector<SiteIndex> launched;
    std::uint64_t situation = 0;
    std::optional<Suspect> suspect;  ///< all that is tried in it
    std::size_t slot = 0;            ///< in the experiment
    std::uint64_t experiment = 0;
  };

  // tuning_engine.cpp
  void plan_trials(PendingPass& pass);
  void settle_trials(const PendingPass& pass, const PassResult* result);
  void report_trial(const PlannedTrial& trial, const SiteResult* seen, const PassResult* result,
                    std::uint64_t number, bool counts);
  void settle_experiment(const PendingPass& pass, const PassResult* result);
  void resolve(std::map<PassId, PendingPass>::iterator at, const PassResult* result);
  void abandon_open_pass();
  [[nodiscard]] std::vector<std::uint32_t> known_configs() const;
  [[nodiscard]] double tuning_seconds() const;

  // tuning_failures.cpp
  void fail_config(SiteIndex index, std::uint32_t config, int iteration);
  /// @param seen has failed, in that pass
  void fail_as_seen(const SiteResult& seen, std::uint32_t config, int iteration,
                    std::uint64_t number);
  /// False: that was known, or it is the default.
  bool give_up_config(SiteIndex index, std::uint32_t config);
  /// @param seconds NaN: it has not ended
  void time_out(SiteIndex index, std::uint32_t config, int iteration, double seconds);
  /// The sites and configs that pending passes try, of which no result has come before.
  [[nodiscard]] std::vector<std::pair<SiteIndex, std::uint32_t>> under_way() const;
  [[nodiscard]] static double took(const SiteResult& seen);
  [[nodiscard]] bool took_too_long(const SiteResult& seen) const;
  void give_up_waiting();

  // tuning_stages.cpp
  void advance();
  void take_in(SiteIndex index);
  void admit(SiteIndex index);
  [[nodiscard]] bool generation_is_open() const;
  bool start_generation();
  [[nodiscard]] bool wants_generation(const TuningSite& site) const;
  void settle_sites(bool even_unfinished);
  [[nodiscard]] bool table_has_work() const;
  /// Whether a site waits for results: it has run its last trial, or its schedule looks at samples.
  [[nodiscard]] bool a_site_waits() const;
  [[nodiscard]] bool stalled(const TuningSite& site) const;
  void enter(Stage stage);
  void finish_table();
  void finish_generation();
  [[nodiscard]] std::vector<SiteIndex> changed_sites() const;
  [[nodiscard]] NoisePrior region_noise() const;
  [[nodiscard]] double own_cost(const TuningSite& site, std::uint32_t config) const;
  [[nodiscard]] double own_gain(const TuningSite& site) const;
  [[nodiscard]] bool over_budget(bool for_confirm) const;
  [[nodiscard]] bool trials_cost_too_much() const;

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

  // tuning_experiments.cpp
  void start_refine();
  [[nodiscard]] std::vector<std::uint32_t> candidates_of(const TuningSite& site) const;
  void take_refined();
  void start_confirm();
  void skip_failed_slots();
  [[nodiscard]] ConfirmLimits confirm_limits() const;
  void try_winners();
  void finish_try();
  /// Every winner of those that were shown together is left out once.
  void start_leaving_out();
  /// By its own times alone: all of the winner's are below all that it has to be better than.
  [[nodiscard]] static bool is_clear(const TuningSite& site);
  void leave_out_next();
  void finish_left_out();
  /// Nothing more is compared: what was shown stays.
  void cut_confirm_short();
  void drop_least_gain();
  void finish_confirm(ConfirmVerdict verdict);
  [[nodiscard]] bool experiment_advances();

  TuningOptions options_;
  TuningObserver& observer_;
  std::vector<TuningSite> sites_;
  std::vector<std::uint32_t> winners_;
  bool said_too_many_ = false;

  Stage stage_ = Stage::Table;
  Measure refine_measure_ = Measure::Activity;
  bool first_after_cupti_ = false;
  bool bounded_ = true;  ///< the program makes the entries
  std::uint32_t generation_ = 0;
  std::uint64_t generation_passes_ = 0;
  std::vector<SiteIndex> refined_sites_;  ///< by position in the refinement
  std::optional<Refine> refine_;
  std::optional<Comparison> comparison_;
  Experiment experiment_;
  ConfirmEvent confirm_event_;
  std::vector<SiteIndex> tried_sites_;
  bool shown_ = false;      ///< the region was, with the winners together
  bool has_less_ = false;   ///< than what was shown together
  int left_out_pairs_ = 0;  ///< most for one site
  Scatter pair_scatter_;    ///< of what was shown together
  std::deque<SiteIndex> to_leave_out_;
  std::optional<SiteIndex> left_out_;  ///< what is compared is the region without this winner
  bool said_over_budget_ = false;
  bool overran_ = false;  ///< a pass did not end in time: nothing more is tried

  std::deque<Suspect> suspects_;  ///< of this generation, before its table
  std::map<PassId, PendingPass> pending_;
  std::optional<PassId> open_;  ///< the counted pass that is going on
  bool entered_ = false;        ///< an entry is going on
  std::vector<std::uint32_t> plan_;
  std::uint64_t passes_ = 0;
  std::uint64_t entries_ = 0;
  std::uint64_t waited_ = 0;
  double waiting_since_ = 0;
  double first_now_ = std::numeric_limits<double>::quiet_NaN();
  double last_now_ = 0;
  double finished_at_ = 0;
  double trials_cost_ = 0;
  RegionBaseline baseline_;
};

}  // namespace contextune
