#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "intercept/replay/replay_ranks.hpp"
#include "intercept/site/launch_region.hpp"

namespace contextune::intercept {

/// The ranks that repeat a region's visits: this one alone or, where a vote says so, all that the
/// region's communicators link. Decides when a replay ends before the tuning does. Used by the
/// thread that visits; waits as ReplayRanks does.
class VisitRanks {
 public:
  VisitRanks(const LaunchRegion& region, const RegionServices& services, const Options& options)
      : region_(region), services_(services), options_(options) {}
  VisitRanks(const VisitRanks&) = delete;
  VisitRanks& operator=(const VisitRanks&) = delete;

  /// Looks for others, which may have come since the last visit.
  void find();
  /// Whether there are others, who vote on each visit.
  [[nodiscard]] bool any() const noexcept { return others_ != nullptr; }
  /// Of them, if there are any.
  [[nodiscard]] const Lockstep& lockstep() const noexcept { return others_->lockstep(); }

  /// With the others: says whether the visit under way is repeated, and by all.
  /// @throws RanksLost
  [[nodiscard]] ReplayVerdict vote(const ReplayVote& vote);
  /// The visit under way is repeated by all of them.
  [[nodiscard]] bool together() const noexcept { return together_; }
  /// Its repetition begins: nobody has said yet that it has to stop.
  void begin() noexcept { told_to_stop_ = false; }
  void end() noexcept { together_ = false; }

  /// Before a run that is made together. @throws RanksLost
  void await(ReplayRanks::Run run);
  /// The findings of all ranks that repeat this together, or of this one alone. @throws RanksLost
  [[nodiscard]] ReplayRanks::Findings exchange(bool right, std::uint32_t number = 0);
  /// The others, if this is repeated together, are told.
  void occupied(double seconds, const std::string& why);
  void leave(const std::string& why);

  /// Whether the replay has to end before the tuning does: on all ranks alike.
  [[nodiscard]] bool must_stop() const;
  /// The same, as far as this rank knows.
  [[nodiscard]] bool must_stop_here() const;

 private:
  const LaunchRegion& region_;
  const RegionServices& services_;
  const Options& options_;
  std::unique_ptr<ReplayRanks> others_;  ///< null: what is repeated has to do with this rank alone
  bool together_ = false;
  bool told_to_stop_ = false;
};

}  // namespace contextune::intercept
