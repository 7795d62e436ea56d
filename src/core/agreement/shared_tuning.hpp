#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/agreement/agreement_backoff.hpp"
#include "core/agreement/batch.hpp"
#include "core/agreement/batch_run.hpp"
#include "core/agreement/decision_streams.hpp"
#include "core/agreement/question.hpp"
#include "core/agreement/shared_sites.hpp"
#include "core/coordination/coordinator.hpp"
#include "core/coordination/engagement.hpp"
#include "core/search/region_tuning.hpp"
#include "core/search/tuning_clock.hpp"

namespace contextune {

/// With whom a region is tuned, and how long that may take.
struct SharedTuningSettings {
  std::uint64_t group = 0;           ///< Topic::group: the same on all ranks of the region
  std::vector<std::uint32_t> ranks;  ///< of the job, ascending
  /// The number of GroupPlanners among the coordinator's deciders.
  std::uint32_t kind = 0;
  std::uint64_t inputs_hash = 0;    ///< of declared inputs other than TuningOptions
  std::uint32_t lockstep_kind = 0;  ///< number of Lockstep::decide among the deciders
  /// Seconds that a rank may be kept waiting for the others.
  double presync_timeout = 5;
  std::uint64_t entries_before = 0;  ///< entries of the region so far; ranks count them alike
  /// Collectives were made in more than one of these entries.
  bool is_late = false;
  /// Says how the sites go on where the ranks do not agree, in a sentence without its end.
  std::function<std::string()> outcome{};
};

/// Leaves only these ranks; several groups in one region ask questions of their own.
void narrow(SharedTuningSettings& settings, std::vector<std::uint32_t> ranks);

/// The search in one region, decided for all ranks together. Every rank runs the same batches of
/// passes, reports what it measured, and is given the next. Agreed once a batch, not once a site or
/// an entry.
///
/// Where the program makes the entries, it is never kept waiting for a rank that has not spoken. A
/// batch holds from an entry that no rank has reached. A rank that gets there without having been
/// told takes its word back; the ranks ask again later, with more room. Where entries are made for
/// the search, none is made before all ranks are known to take part. The program's own collectives
/// would wait for a rank that does not. Once agreement has failed for good, every site runs its
/// default, at once where nothing was committed.
///
/// Threads as RegionTuning says. The coordinator and the observer must outlive it.
class SharedTuning final : public RegionTuning, private TuningRanks {
 public:
  SharedTuning(const TuningOptions& options, SharedTuningSettings settings,
               Coordinator& coordinator, TuningObserver& observer);

  SiteIndex add_site(SiteSpec spec) override;
  [[nodiscard]] Key public_key(const Key& key) const override;
  void site_ready(SiteIndex site, std::span<const std::uint32_t> unusable = {}) override;
  void reject_config(SiteIndex site, std::uint32_t config, const std::string& detail,
                     Rejection why = Rejection::Wrong) override;
  [[nodiscard]] PassPlan begin_pass(PassId pass, double now, bool bounded = true) override;
  /// In place of begin_pass, and without an end: an entry in which nothing is to be done about this
  /// search. It counts as one all the same, since ranks name entries by their number.
  void pass_by(double now);
  void skip_entries(std::uint64_t entries) override { entries_ += entries; }
  void end_pass(PassId pass, std::span<const SiteIndex> launched, std::span<const SiteIndex> failed,
                double now) override;
  void add_result(const PassResult& result, double now) override;
  void spend(double seconds, std::optional<PassId> pass = std::nullopt) override;
  /// Between batches only, where all ranks are at the same entry.
  [[nodiscard]] bool wants_results() const override { return !run_.has_next(); }
  void overrun(double now) override;
  /// Ends the agreement for that reason, a clause.
  void give_up(const std::string& why);
  [[nodiscard]] bool has_failed() const noexcept { return accord_ == Accord::Failed; }
  void explain_unfinished() override;
  [[nodiscard]] bool finished() const override;
  [[nodiscard]] std::span<const std::uint32_t> winners() const override { return sites_.winners(); }
  [[nodiscard]] TuningProgress progress() const override;
  [[nodiscard]] TuningRanks& ranks() override { return *this; }

 private:
  void cut_short() override;
  [[nodiscard]] std::unique_ptr<Lockstep> lockstep() override;
  [[nodiscard]] bool is_alone() override { return settings_.ranks.size() < 2; }
  void await(const std::function<bool()>& interrupted = {}) override;
  void occupied(double seconds, const std::string& why) override;
  void pause() override;
  void leave(const std::string& why) override;
  void repeat_together(std::span<const std::uint32_t> ranks) override {
    if (!ranks.empty()) limit_to(ranks);
  }
  void limit_to(std::span<const std::uint32_t> ranks) override;
  [[nodiscard]] bool keep_in_step(DecisionPort& port) override;
  bool settle(Due due, double now) override;

  enum class Accord {
    Sought,
    Closed,  ///< nothing that comes after the winners is agreed on any more
    Failed   ///< nothing is
  };

  // shared_tuning.cpp: entries
  void take_winner(SiteIndex here);
  [[nodiscard]] bool next_pass_is_due(bool bounded) const;
  [[nodiscard]] bool has_news() const;

  // shared_tuning_parts.cpp: what is said
  void ask(bool bounded);
  [[nodiscard]] BatchReport report(bool bounded) const;
  /// A report without anything that this rank has done.
  [[nodiscard]] BatchReport notice() const;

  // shared_tuning_agreement.cpp: what is heard
  void advance(bool bounded);
  /// The question's answer has come.
  void heard(bool bounded);
  /// Counts a refusal; whether the question is asked again.
  [[nodiscard]] bool has_patience(const std::string& why);
  void take(Batch&& batch, std::uint64_t hash);
  void mirror(const TuningEvent& event);
  void fail(const std::string& why);
  void close(const std::string& why);

  const TuningOptions options_;
  SharedTuningSettings settings_;
  Coordinator& coordinator_;
  TuningObserver& observer_;
  Engagement engagement_;  ///< in a batch whose passes are made for us

  SharedSites sites_;
  DecisionStreams decisions_;

  BatchRun run_;
  AgreementBackoff backoff_;

  Question question_;
  Accord accord_ = Accord::Sought;

  Stage stage_ = Stage::Table;
  bool observed_ = false;  ///< an entry that showed which sites there are
  std::uint64_t entries_;
  TuningClock clock_;
};

}  // namespace contextune
