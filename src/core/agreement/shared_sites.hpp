#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "core/agreement/batch.hpp"
#include "core/trials/tuning_observer.hpp"
#include "core/value/tuning_options.hpp"

namespace contextune {

/// A site of this rank in a region that several ranks tune. Plain data.
struct OwnSite {
  SharedSite shared;
  std::optional<SharedIndex> index;  ///< once the planner has taken it up
  bool reported = false;
  bool ready = true;
  bool reported_ready = false;
  std::vector<std::uint32_t> unusable;
  /// Configs that compute something else here, or may: never run.
  std::map<std::uint32_t, Rejection> wrong;
  std::set<std::uint32_t> reported_wrong;
  std::optional<StoredWinner> stored;
  Suspicions suspicions;
  bool outdated = false;
  std::uint32_t leased = 0;  ///< what its decisions are told when no lease is running
  std::map<std::uint32_t, std::vector<double>> samples;  ///< this rank's own, by config
};

/// The sites of this rank in a region that several ranks tune: which of those that the planner has
/// taken up they are, what the others have been told of them, and what they run when nothing is
/// tried. Ranks mean the same site by name and key. The options and the observer must outlive it.
class SharedSites {
 public:
  SharedSites(const TuningOptions& options, TuningObserver& observer);

  /// Without the device: which of a host's devices a rank uses is its own affair.
  [[nodiscard]] static Key public_key(const Key& key);
  /// Returns no_site, and reports it once, beyond max_sites.
  /// @param are_found the ranks have their winners
  /// @throws Error if it has no configs or pins one that it does not have
  SiteIndex add(SiteSpec spec, bool are_found);
  void set_ready(SiteIndex here, std::span<const std::uint32_t> unusable);
  void reject(SiteIndex here, std::uint32_t config, Rejection why);
  [[nodiscard]] const OwnSite& operator[](SiteIndex here) const { return sites_[here]; }
  [[nodiscard]] std::size_t size() const { return sites_.size(); }

  /// The planner has taken up one more.
  void take_up(const SharedSite& shared);
  /// This rank's; no_site where it lacks that.
  [[nodiscard]] SiteIndex local(SharedIndex index) const;

  /// The config of each in an entry: as the pass has it where this rank can run that, and without a
  /// pass the winners. Valid until the next plan.
  std::span<const std::uint32_t> plan(const Batch::Pass* pass);
  [[nodiscard]] std::span<const std::uint32_t> winners() const { return winners_; }
  /// @param agreed by SharedIndex
  void take_winner(SiteIndex here, std::span<const std::uint32_t> agreed);
  /// Nothing is agreed on: only decisions that were leased to ranks stay.
  void drop_winners();
  /// When no lease is running, its decisions are told that config.
  void lease(SiteIndex here, std::uint32_t config) { sites_[here].leased = config; }

  /// Adds what the others have not been told.
  void report(BatchReport& report) const;
  /// They have been told that.
  void note_reported(const BatchReport& report);
  [[nodiscard]] bool has_news() const;

  void add_sample(SiteIndex here, std::uint32_t config, double seconds);
  /// By this rank's own samples; where it has none, as agreed.
  [[nodiscard]] double cost(SiteIndex here, std::uint32_t config, double agreed) const;

 private:
  [[nodiscard]] SharedSite shared_site(const SiteSpec& spec) const;
  void join(SiteIndex here, SharedIndex index);
  /// The config, if this rank can run it now, else what it runs instead.
  [[nodiscard]] std::uint32_t runnable(SiteIndex here, std::uint32_t config) const;

  const TuningOptions& options_;
  TuningObserver& observer_;
  std::vector<OwnSite> sites_;
  std::vector<SharedSite> shared_;  ///< all that the planner has taken up, by SharedIndex
  std::vector<SiteIndex> local_;    ///< by SharedIndex
  std::vector<std::uint32_t> winners_;
  std::vector<std::uint32_t> plan_;
  bool said_too_many_ = false;
};

}  // namespace contextune
