#include <algorithm>

#include "cli/rank_comparison.hpp"
#include "cli/text.hpp"
#include "log/logfmt.hpp"

namespace contextune::cli {
namespace {

using log::printable;

// With more ranks than that a row holds the fastest and the slowest only.
constexpr std::size_t most_columns = 8;

std::string time_of(const std::map<int, double>& seconds, int rank) {
  const auto place = seconds.find(rank);
  return place == seconds.end() ? "-" : time_text(place->second);
}

void add_ranks(std::vector<std::string>& row, const RankComparison& comparison,
               const WinnerOfRanks& winner) {
  if (comparison.ranks.size() <= most_columns) {
    for (const int rank : comparison.ranks) row.push_back(time_of(winner.seconds, rank));
  } else {
    row.push_back(time_of(winner.seconds, winner.fastest));
    row.push_back(time_of(winner.seconds, winner.slowest));
  }
}

std::string winners_text(const RankComparison& comparison, std::size_t width) {
  if (comparison.winners.empty()) return {};
  std::vector<std::string> head = {"region", "site", "winner", "reason"};
  std::vector<std::size_t> right;
  if (comparison.ranks.size() <= most_columns) {
    for (const int rank : comparison.ranks) head.push_back("rank " + std::to_string(rank));
  } else {
    head.insert(head.end(), {"fastest", "slowest"});
  }
  for (std::size_t i = 4; i <= head.size(); ++i) right.push_back(i);
  head.insert(head.end(), {"spread", "slowest rank"});
  TextTable table(right);
  table.add(std::move(head));
  for (const WinnerOfRanks& winner : comparison.winners) {
    const std::string site = winner.site + (winner.key.empty() ? "" : " " + winner.key);
    std::vector<std::string> row = {
        printable(winner.region), shortened(printable(site), std::max<std::size_t>(width / 3, 20)),
        shortened(winner.config, std::max<std::size_t>(width / 3, 20)), printable(winner.reason)};
    add_ranks(row, comparison, winner);
    row.push_back(percent_text(winner.spread));
    row.push_back(winner.seconds.empty() ? "-" : std::to_string(winner.slowest));
    table.add(std::move(row));
  }
  return "\n  winners and their time on each rank" +
         std::string(comparison.simulated ? " (simulated)" : "") + "\n" + table.to_string("    ");
}

std::string slowest_text(const RankComparison& comparison) {
  if (comparison.slowest < 0) return {};
  return "    rank " + std::to_string(comparison.slowest) +
         " is the slowest: " + time_text(comparison.total_seconds.at(comparison.slowest)) +
         " for the winners that every rank has\n";
}

std::string agreements_text(const RankComparison& comparison) {
  std::string text;
  for (const LastAgreement& agreement : comparison.agreements) {
    text += "    group " + printable(agreement.group) + ", question " +
            std::to_string(agreement.question) + ": hash " + printable(agreement.hash) + " on " +
            count_text(agreement.ranks.size(), "rank", "ranks") + "\n";
  }
  return text.empty() ? text : "\n  agreed on last\n" + text;
}

std::string waits_text(const RankComparison& comparison) {
  if (comparison.waits.empty()) return {};
  TextTable table({1, 2, 3, 4});
  table.add({"rank", "questions", "agreed", "waited", "longest"});
  for (const auto& [rank, wait] : comparison.waits) {
    table.add({std::to_string(rank), std::to_string(wait.questions), std::to_string(wait.committed),
               time_text(wait.seconds), time_text(wait.longest_seconds)});
  }
  return "\n  waiting for other ranks; who waits least is waited for" +
         std::string(comparison.simulated ? " (simulated)" : "") + "\n" + table.to_string("    ");
}

}  // namespace

std::string comparison_text(const RankComparison& comparison, std::size_t width) {
  std::string text = comparison.runs.size() == 1 ? "contextune: run" : "contextune: runs";
  for (std::size_t i = 0; i < std::min(comparison.runs.size(), most_columns); ++i)
    text += (i == 0 ? " " : ", ") + printable(comparison.runs[i]);
  if (comparison.runs.size() > most_columns) text += ", ...";
  text += " on " + std::to_string(comparison.ranks.size()) + " ranks\n";
  text += winners_text(comparison, width) + slowest_text(comparison);
  text += agreements_text(comparison) + waits_text(comparison);
  if (comparison.differences.empty())
    return text + "\n  the ranks do not differ in anything else\n";
  text += "\n  the ranks differ\n";
  for (const std::string& difference : comparison.differences)
    text += "    " + printable(difference) + "\n";
  return text;
}

}  // namespace contextune::cli
