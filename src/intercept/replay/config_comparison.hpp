#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "intercept/replay/compared_runs.hpp"
#include "intercept/replay/fillable_memory.hpp"
#include "intercept/replay/visit_ranks.hpp"
#include "intercept/site/launch_region.hpp"
#include "intercept/tuner/search.hpp"

namespace contextune::intercept {

/// Finds out over a region's visits which configs compute what the default does. A run that leaves
/// what is there already leaves what is right wherever the region was run before on the same
/// inputs: so results are compared on other contents as well. Where the code of the kernels shows
/// that the region may find anything in what it writes, that is filled, with other bytes for each
/// config. Elsewhere bytes of ours might be taken for addresses, and a config has to be right in
/// visits in which the region changed different things; where there are none, it is left out. Used
/// by the thread that visits.
class ConfigComparison {
 public:
  using Trials = ComparedRuns::Trials;
  using Config = ComparedRuns::Config;

  ConfigComparison(const LaunchRegion& region, const RegionServices& services, Search& search,
                   VisitRanks& ranks, const ResultTolerance& tolerance)
      : region_(region),
        services_(services),
        search_(search),
        ranks_(ranks),
        tolerance_(tolerance) {}
  ConfigComparison(const ConfigComparison&) = delete;
  ConfigComparison& operator=(const ConfigComparison&) = delete;

  // Each throws as ComparedRuns does, and Declined where the defaults are not right any more.

  /// Compares all configs that were not looked at, until the replay has to end.
  void screen(ComparedRuns& runs, FillableMemory& memory);
  /// Finds out which of the configs that a wrong run had are wrong, and rejects them.
  void blame(ComparedRuns& runs, const Trials& tried);
  void reject(const Site& site, std::uint32_t config);
  /// Whether the search has to wait for a visit that finds other contents. Leaves out what has
  /// waited long enough, or would keep others waiting.
  [[nodiscard]] bool waits_for_other_contents(const ComparedRuns& runs,
                                              const FillableMemory& memory);

 private:
  void screen_suspects(ComparedRuns& runs);
  /// After these were right on the visit's own memory: are they on other contents?
  void judge(ComparedRuns& runs, FillableMemory& memory, const Trials& tried, std::uint32_t number);
  /// The same of those alone of which the code is known, and of those of which it is not.
  void judge_known(ComparedRuns& runs, FillableMemory& memory, const Trials& right,
                   std::uint32_t number);
  void judge_unknown(ComparedRuns& runs, FillableMemory& memory, const Trials& right,
                     std::uint32_t number);
  /// @param filled what holds other contents. Drops the configs that are wrong there.
  [[nodiscard]] bool are_right_when_filled(ComparedRuns& runs, FillableMemory& memory,
                                           Trials& trials,
                                           const std::vector<gpu::MemoryRange>& filled,
                                           std::uint32_t number);
  void drop_wrong(Trials& trials) const;
  /// The same as blame() where other ranks may have tried what is wrong.
  void blame_together(ComparedRuns& runs, const Trials& tried);
  /// At the next visit: one of them is wrong, and there is no time now to find out which.
  void look_again_at(const Trials& tried);
  /// Those of which it is not known yet whether they are right.
  [[nodiscard]] Trials unjudged(const ComparedRuns& runs) const;
  /// Whether there are any to be timed.
  [[nodiscard]] bool has_judged(const ComparedRuns& runs) const;

  const LaunchRegion& region_;
  const RegionServices& services_;
  Search& search_;
  VisitRanks& ranks_;
  const ResultTolerance& tolerance_;
  std::set<Config> screened_;  ///< configs that were looked at
  std::set<Config> wrong_;
  /// The changes of the visits in which a config was right.
  struct Looks {
    std::set<std::uint64_t> changes;
    int number = 0;
  };
  std::map<Config, Looks> looks_;
};

}  // namespace contextune::intercept
