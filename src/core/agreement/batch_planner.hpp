#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/agreement/batch.hpp"
#include "core/agreement/lease_planner.hpp"
#include "core/coordination/coordinator.hpp"
#include "core/search/tuning.hpp"

namespace contextune {

/// Decides for all ranks of a group by one Tuning over the union of their sites. The Tuning is
/// asked for as many passes ahead as can be planned without results, and is fed what the slowest
/// rank measured. Deterministic: a function of the reports. Not thread-safe.
class BatchPlanner {
 public:
  /// The next batch, encoded, from one report of each rank.
  /// @param ranks their numbers in the job, for messages; as many as reports, always the same
  /// @param why   a sentence, if it is empty: the ranks have not run or do not mean the same
  [[nodiscard]] Payload plan(std::span<const std::uint32_t> ranks,
                             std::span<const BatchReport> said, std::string& why);

  /// In place of a batch: why there will never be one. Given to all ranks like a batch, so that
  /// none of them asks again.
  [[nodiscard]] static Payload refusal(std::string why);

 private:
  /// Collects what the tuning reports.
  class Events final : public TuningObserver {
   public:
    void stage(Stage stage, std::uint32_t generation) override;
    void trial(const TrialEvent& event) override { list.emplace_back(event); }
    void winner(const WinnerEvent& event) override { list.emplace_back(event); }
    void confirm(const ConfirmEvent& event) override { list.emplace_back(event); }
    void left_out(const LeftOutEvent& event) override { list.emplace_back(event); }
    void fallback(FallbackReason reason, SiteIndex site, const std::string& text) override;

    std::vector<TuningEvent> list;
    std::string culprit;  ///< appended to what is said about a config that cannot be launched
  };
  struct Site {
    SharedSite shared;
    std::vector<bool> unready;  ///< by position among the ranks
    std::vector<std::uint32_t> unusable;
    std::vector<bool> reported;  ///< by the same
    std::vector<std::optional<StoredWinner>> stored;
    Suspicions suspicions;  ///< of all of them
    bool outdated = false;  ///< on any of them
    bool told_ready = false;
    bool launched = true;  ///< by some rank in the last batch, or not known yet
    int out_of_step = 0;   ///< batches for which a collective waited to be in step
  };

  [[nodiscard]] std::string fault_of(std::span<const std::uint32_t> ranks,
                                     std::span<const BatchReport> reports) const;
  /// Why these ranks will never run the same; empty: nothing says so.
  [[nodiscard]] static std::string hopeless(std::span<const std::uint32_t> ranks,
                                            std::span<const BatchReport> reports);
  /// The reports as if ranks that pause had lost all that was to be run.
  [[nodiscard]] std::vector<BatchReport> without_pauses(std::span<const BatchReport> reports) const;
  [[nodiscard]] Payload issue(Batch& batch, std::uint64_t first_entry);
  void take_sites(std::span<const std::uint32_t> ranks, std::span<const BatchReport> reports);
  void take_up(const BatchReport::NewSite& seen, std::size_t rank, std::size_t num_ranks,
               std::span<const std::uint32_t> ranks);
  void reject(SharedIndex site, std::uint32_t config, std::uint32_t rank, bool is_wrong);
  void tell_ready();
  void tell_stored(SharedIndex site);
  void name_ranks(std::span<const std::uint32_t> ranks);
  void take_results(std::span<const std::uint32_t> ranks, std::span<const BatchReport> reports);
  /// Whether a rank waits no longer for that pass; notes which.
  [[nodiscard]] bool overrun_on(std::size_t pass, std::span<const std::uint32_t> ranks,
                                std::span<const BatchReport> reports);
  void plan_passes(Batch& batch, bool bounded, std::size_t most);
  void put_in_step(Batch& batch);
  void keep_default(SharedIndex site, const std::string& why, std::vector<TuningEvent>& events);
  [[nodiscard]] bool collectives_are_ready() const;
  [[nodiscard]] std::size_t passes_ahead(std::span<const BatchReport> reports) const;

  std::string refused_;
  Events events_;
  std::optional<Tuning> tuning_;
  std::vector<Site> sites_;
  std::map<std::pair<std::string, std::string>, SharedIndex> by_name_;
  std::uint64_t num_configs_ = 0;
  std::vector<SharedSite> taken_up_;  ///< since the last batch
  LeasePlanner leases_;
  Batch last_;  ///< the batch that was planned last
  std::uint64_t last_hash_ = 0;
  /// The batch before: ranks answer it when the last one was not committed, and is issued again.
  std::uint64_t before_hash_ = 0;
  std::size_t before_passes_ = 0;
  bool has_passes_ = false;  ///< a batch with passes was planned
  std::string overran_on_;   ///< the rank on which a pass did not end in time
  double now_ = 0;
  double pass_seconds_ = 0;  ///< of the last batch's passes, on average; 0: not known
};

/// A Coordinator's decider that keeps one planner for each group. On one thread at a time.
class GroupPlanners {
 public:
  /// @param topic whose ranks have said this, in their order
  [[nodiscard]] Payload decide(const Topic& topic, std::span<const Payload> said, std::string& why);

 private:
  std::map<std::pair<std::uint64_t, RankSet>, BatchPlanner> planners_;
};

}  // namespace contextune
