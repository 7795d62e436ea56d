#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "intercept/replay/compared_runs.hpp"
#include "intercept/replay/config_comparison.hpp"
#include "intercept/replay/fillable_memory.hpp"
#include "intercept/replay/region_memory.hpp"
#include "intercept/replay/replayer.hpp"
#include "intercept/replay/visit_ranks.hpp"
#include "intercept/site/launch_region.hpp"
#include "intercept/tuner/search.hpp"

namespace contextune::intercept {

/// The trials that one visit's recording is repeated for: comparisons of configs, then passes of
/// the search until it is over or the replay has to end. Used by the thread that visits.
class VisitTrials {
 public:
  /// @param visit number of the visit in its region
  VisitTrials(LaunchRegion& region, const RegionServices& services, Search& search,
              SiteTable& table, Replayer& replayer, RegionMemory& memory, VisitRanks& ranks,
              ConfigComparison& comparison, std::uint64_t visit);
  VisitTrials(const VisitTrials&) = delete;
  VisitTrials& operator=(const VisitTrials&) = delete;

  /// Leaves memory as some run left it. @throws Declined, or as ComparedRuns does
  void tune();

  /// Runs that were made.
  [[nodiscard]] std::uint64_t number() const noexcept { return runs_.number(); }
  /// Whether a pass came right after another; absent: there was none yet.
  [[nodiscard]] std::optional<bool> repeats() const noexcept { return repeats_; }
  /// Why not, as a clause.
  [[nodiscard]] const std::string& why_restored() const noexcept { return why_restored_; }

 private:
  void finish_builds();
  void screen_pass();
  // The caches that a pass finds, as one entry of the program leaves them to the next.
  /// Before the first pass of a visit: whether one may come right after another.
  void find_whether_it_repeats();
  /// Runs what the pass will run, so that the pass comes after it as entries of the program do.
  void follow_itself();

  LaunchRegion& region_;
  const RegionServices& services_;
  Search& search_;
  SiteTable& table_;
  const Recording& recording_;
  RegionMemory& memory_;
  VisitRanks& ranks_;
  ConfigComparison& comparison_;
  ComparedRuns runs_;
  FillableMemory fillable_;
  std::optional<bool> repeats_;
  std::string why_restored_;
};

}  // namespace contextune::intercept
