#include "cli/run/progress.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "cli/words/text.hpp"
#include "log/logfmt.hpp"

namespace contextune::cli {
namespace {

// A pace that was seen for less than this says little: lines come in bursts.
constexpr double least_seconds_of_a_pace = 1;
constexpr std::uint64_t least_passes_of_a_pace = 16;

/// Its sites count their own launches and come to their ends one by one.
constexpr std::string_view region_of_the_process = "process";

std::size_t num_decided(const log::RegionReport& region) {
  return static_cast<std::size_t>(std::ranges::count_if(
      region.sites, [](const log::SiteReport& site) { return site.winner.has_value(); }));
}

// A region that was found has no passes.
std::string search_text(const log::RegionReport& region) {
  if (region.screened_ways > 0)
    return "trying " + count_text(region.screened_ways, "way", "ways") + " to launch";
  if (!region.compared.empty()) return "comparing " + region.compared;
  return region.stage == "finished" && region.passes == 0 ? "finished" : "";
}

std::string where(const log::RegionReport& region) {
  if (std::string search = search_text(region); !search.empty()) return search;
  std::string text = region.stage.empty() ? "entered" : region.stage;
  text += ", " + count_text(region.passes, "pass", "passes");
  text += ", " + count_text(region.sites.size(), "site", "sites");
  if (const std::size_t decided = num_decided(region); decided > 0) {
    text += ", " + std::to_string(decided) + " decided";
  }
  return text;
}

std::string who(const log::ProcessReport& process, std::size_t num_processes) {
  if (num_processes == 1) return {};
  return "rank " + std::to_string(process.rank) + ", pid " + std::to_string(process.pid) + ": ";
}

// "8 s", "3 min", "2 h": an estimate has no more digits.
std::string duration_text(double seconds) {
  constexpr double a_minute = 60;
  constexpr double an_hour = 3600;
  const auto whole = [](double number) {
    return std::to_string(static_cast<long long>(std::ceil(number)));
  };
  if (seconds < 2 * a_minute) return whole(seconds) + " s";
  if (seconds < 2 * an_hour) return whole(seconds / a_minute) + " min";
  return whole(seconds / an_hour) + " h";
}

bool each_alone(const log::RegionReport& region) {
  return region.name == region_of_the_process;
}

// Sites that are tuned each for itself are in several stages: the first of them counts.
std::string stage_of(const log::RegionReport& region, bool has_table) {
  return each_alone(region) && has_table ? "table" : region.stage;
}

int order_of_stage(const log::RegionReport& region) {
  if (each_alone(region)) return 0;
  if (region.stage == "finished") return 3;
  if (region.stage == "confirm") return 2;
  return region.stage == "refine" ? 1 : 0;
}

/// A region on one rank.
struct OnRank {
  const log::ProcessReport* process = nullptr;
  const log::RegionReport* region = nullptr;
};

/// The same on all ranks.
struct OnRanks {
  OnRank behind;  ///< the one that is furthest behind
  std::size_t num_ranks = 0;
  bool are_level = true;  ///< none is further behind than another
};

// The slowest rank counts: what is not finished there is not finished.
OnRanks on_ranks(const std::string& name, const std::vector<log::ProcessReport>& processes) {
  OnRanks ranks;
  OnRank& behind = ranks.behind;
  const auto left_of = [](const OnRank& one) {
    return std::pair(-order_of_stage(*one.region),
                     table_left(*one.region, each_alone(*one.region)).passes);
  };
  for (const log::ProcessReport& process : processes) {
    for (const log::RegionReport& region : process.regions) {
      if (region.name != name) continue;
      ++ranks.num_ranks;
      const OnRank one{&process, &region};
      if (behind.region != nullptr && left_of(one) != left_of(behind)) ranks.are_level = false;
      if (behind.region == nullptr || left_of(one) > left_of(behind)) behind = one;
    }
  }
  return ranks;
}

std::string table_text(const TableLeft& left) {
  std::string text = "table, " + std::to_string(left.tried) + " of " +
                     count_text(left.configs, "config", "configs") + " tried";
  if (left.is_known) text += ", at most " + count_text(left.passes, "pass", "passes") + " left";
  return text;
}

}  // namespace

TableLeft table_left(const log::RegionReport& region, bool each_alone) {
  TableLeft left;
  left.is_known = !region.sites.empty();
  for (const log::SiteReport& site : region.sites) {
    if (site.num_configs < 2) continue;
    std::set<std::uint32_t> tried;
    for (const log::TrialReport& trial : site.trials) tried.insert(trial.config);
    left.configs += site.num_configs;
    left.tried += site.winner ? site.num_configs : tried.size();
    if (site.winner) continue;
    if (site.table_passes == 0) left.is_known = false;
    const std::uint64_t of_site =
        site.table_passes - std::min<std::uint64_t>(site.table_passes, site.trials.size());
    left.passes = each_alone ? left.passes + of_site : std::max(left.passes, of_site);
  }
  return left;
}

std::vector<std::string> Progress::news(const std::vector<log::ProcessReport>& processes) {
  std::vector<std::string> lines;
  for (const log::ProcessReport& process : processes) {
    for (const log::RegionReport& region : process.regions) {
      const std::string key =
          std::to_string(process.rank) + ' ' + std::to_string(process.pid) + ' ' + region.name;
      const auto [known, fresh] = stages_.emplace(key, region.stage);
      if (!fresh && known->second == region.stage) continue;
      known->second = region.stage;
      lines.push_back("contextune: " + who(process, processes.size()) +
                      log::printable(region.name) + ": " + log::printable(where(region)));
    }
  }
  return lines;
}

// By how fast they went so far. More than before are left where another site came: from then on it
// is measured anew.
std::string Progress::seconds_left(Pace& pace, const TableLeft& left, double now) {
  if (!left.is_known) return {};
  if (pace.left_then == 0 || left.passes > pace.left_last) {
    pace.began = now;
    pace.left_then = left.passes;
  }
  pace.left_last = left.passes;
  const std::uint64_t gone = pace.left_then - left.passes;
  const double seconds = now - pace.began;
  if (left.passes == 0 || gone < least_passes_of_a_pace || seconds < least_seconds_of_a_pace)
    return {};
  return ", about " +
         duration_text(seconds * static_cast<double>(left.passes) / static_cast<double>(gone)) +
         " of the table";
}

std::string Progress::region_status(const std::string& name,
                                    const std::vector<log::ProcessReport>& processes, double now) {
  const OnRanks ranks = on_ranks(name, processes);
  const log::RegionReport& region = *ranks.behind.region;
  const TableLeft left = table_left(region, each_alone(region));
  const bool has_table = left.tried < left.configs || left.passes > 0;
  const std::string stage = stage_of(region, has_table);
  Pace& pace = paces_[name];
  if (pace.stage != stage) pace = {stage, now, now, 0, 0};
  const std::string lasts = " for " + duration_text(now - pace.stage_began);
  constexpr const char* unknown = ", how long it takes is not known";
  std::string text = log::printable(name) + ": ";
  if (region.screened_ways > 0) {
    text += search_text(region) + lasts + unknown;
  } else if (!region.compared.empty()) {
    text += log::printable(search_text(region)) + lasts + ", " +
            count_text(region.compared_pairs, "pair", "pairs") + " until it is judged next";
  } else if (stage == "refine" || stage == "confirm") {
    // How many passes these take depends on what they show.
    text += stage + lasts + unknown;
  } else if (stage != "finished" && has_table) {
    text += table_text(left) + seconds_left(pace, left, now);
  } else {
    text += log::printable(where(region));
  }
  if (ranks.num_ranks > 1)
    text += ranks.are_level ? " (" + std::to_string(ranks.num_ranks) + " ranks)"
                            : " (rank " + std::to_string(ranks.behind.process->rank) +
                                  ", the last of " + std::to_string(ranks.num_ranks) + ")";
  return text;
}

std::string Progress::status(const std::vector<log::ProcessReport>& processes, double now) {
  std::vector<std::string> names;
  for (const log::ProcessReport& process : processes)
    for (const log::RegionReport& region : process.regions)
      if (std::ranges::find(names, region.name) == names.end()) names.push_back(region.name);
  std::string text;
  for (const std::string& name : names)
    text += (text.empty() ? "contextune: " : "; ") + region_status(name, processes, now);
  return text;
}

}  // namespace contextune::cli
