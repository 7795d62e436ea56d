#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/report/summary.hpp"
#include "log/run_report.hpp"

namespace contextune::cli {

/// The times that the ranks measured for one thing, in seconds.
struct TimesOfRanks {
  std::map<int, double> seconds;  ///< by rank; those that know it
  int fastest = -1;               ///< -1: no rank knows it
  int slowest = -1;
  double spread = log::not_known;  ///< (slowest - fastest) / fastest
};

/// A site of which some rank has a winner.
struct SiteOfRanks {
  std::string name;
  std::string key;
  std::string default_config;  ///< "block=256 per_sm=4", or "as launched"
  std::uint32_t config = 0;    ///< the winner, as most ranks have it
  std::string winner_config;
  std::string reason;
  TimesOfRanks defaults;  ///< of the ranks that have this winner, as the next
  TimesOfRanks winners;
  std::vector<int> other_ranks;  ///< that have another winner, or none
};

struct RegionOfRanks {
  std::string name;
  std::vector<SiteOfRanks> sites;
  /// All sites together of which every rank has the same winner and knows its time.
  TimesOfRanks defaults;
  TimesOfRanks winners;
  std::uint64_t batches = 0;       ///< that some rank committed
  std::uint64_t same_batches = 0;  ///< that all ranks that were asked committed, same hash
};

/// How often one rank agreed with the others, and how long it waited for them.
struct WaitOfRank {
  std::uint64_t committed = 0;
  std::uint64_t aborted = 0;
  double seconds = 0;
  double longest_seconds = 0;
};

/// The ranks of one job side by side. Points into the processes that were compared.
struct RankComparison {
  std::vector<std::string> runs;  ///< one, or one a rank where a launcher started each by itself
  std::map<int, const log::ProcessReport*> ranks;
  bool simulated = false;
  bool together = false;  ///< several ranks committed a batch: what one ran, all had to run
  std::vector<RegionOfRanks> regions;
  std::map<int, WaitOfRank> waits;  ///< of ranks that agreed on something or tried to
  /// Sentences: in what ranks differ though they should not.
  std::vector<std::string> differences;
};

/// Compares the ranks of each job of which several ranks have lines, in the order of the jobs'
/// first lines.
[[nodiscard]] std::vector<RankComparison> compare_ranks(
    const std::vector<log::ProcessReport>& processes);

/// The processes whose story is not told by a comparison of ranks that tuned together.
[[nodiscard]] std::vector<const log::ProcessReport*> told_alone(
    const std::vector<log::ProcessReport>& processes,
    const std::vector<RankComparison>& comparisons);

/// For a reader; ends with a newline. Facts shared by all ranks of a job that tuned together are
/// told once, of `shown`, which is one of them.
[[nodiscard]] std::string comparison_text(const RankComparison& comparison,
                                          const log::ProcessReport& shown, std::size_t width,
                                          Detail detail);

}  // namespace contextune::cli
