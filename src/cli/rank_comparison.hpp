#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "log/run_report.hpp"

namespace contextune::cli {

/// A site's winner over all ranks of a run. Times are seconds.
struct WinnerOfRanks {
  std::string region;
  std::string site;
  std::string key;
  std::string config;  ///< as most ranks have it: "block=256 per_sm=4"
  std::string reason;
  std::map<int, double> seconds;  ///< by rank; those that know it
  int fastest = 0;
  int slowest = 0;
  double spread = log::not_known;  ///< (slowest - fastest) / fastest
};

/// How long one rank waited for the others.
struct WaitOfRank {
  std::uint64_t questions = 0;
  std::uint64_t committed = 0;
  double seconds = 0;
  double longest_seconds = 0;
};

/// What was agreed on, the last of it.
struct LastAgreement {
  std::string group;
  std::uint64_t question = 0;
  std::string hash;
  std::vector<int> ranks;  ///< that have it
};

/// The ranks of one job side by side. A plain value.
struct RankComparison {
  std::vector<std::string> runs;  ///< one, or one a rank where a launcher started each by itself
  std::vector<int> ranks;
  bool simulated = false;
  std::vector<WinnerOfRanks> winners;
  /// The one whose winners take most time together, of those that have them all; -1: none has.
  int slowest = -1;
  std::map<int, double> total_seconds;    ///< of the winners that every rank has
  std::map<int, WaitOfRank> waits;        ///< of ranks that agreed on something or tried to
  std::vector<LastAgreement> agreements;  ///< one a group
  /// Sentences: in what ranks differ though they should not.
  std::vector<std::string> differences;
};

/// One for each job of which several ranks have lines, in the order of their first lines. A job is
/// what has one run id, or else ranks of one program that ran at the same time.
[[nodiscard]] std::vector<RankComparison> compare_ranks(
    const std::vector<log::ProcessReport>& processes);

/// For a reader; ends with a newline.
[[nodiscard]] std::string comparison_text(const RankComparison& comparison, std::size_t width);

}  // namespace contextune::cli
