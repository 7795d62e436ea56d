#include "cli/report/rank_comparison.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "cli/report/rank_agreements.hpp"
#include "cli/report/rank_differences.hpp"
#include "cli/report/rank_job.hpp"

namespace contextune::cli {
namespace {

using log::ProcessReport;
using log::RegionReport;
using log::SiteReport;
using log::SyncReport;

using RegionByRank = std::map<int, const RegionReport*>;
using SiteByRank = std::map<int, const SiteReport*>;

void set_extremes(TimesOfRanks& times) {
  if (times.seconds.empty()) return;
  const auto [fastest, slowest] = std::ranges::minmax_element(
      times.seconds, [](const auto& a, const auto& b) { return a.second < b.second; });
  times.fastest = fastest->first;
  times.slowest = slowest->first;
  if (fastest->second > 0) times.spread = slowest->second / fastest->second - 1;
}

// The rank that speaks for those with the same winner, which are the most.
const SiteReport* spokesman(const SiteByRank& by_rank) {
  std::map<std::string, std::pair<int, const SiteReport*>> votes;
  const std::pair<int, const SiteReport*>* most = nullptr;
  for (const auto& [rank, site] : by_rank) {
    if (!site->winner) continue;
    const std::uint32_t config = site->winner->config;
    auto& vote = votes[std::to_string(config) + " " + config_text(*site, config)];
    if (vote.second == nullptr) vote.second = site;
    ++vote.first;
    if (most == nullptr || vote.first > most->first) most = &vote;
  }
  return most == nullptr ? nullptr : most->second;
}

bool same_winner(const SiteReport& a, const SiteReport& b) {
  return a.winner && b.winner && a.winner->config == b.winner->config &&
         config_text(a, a.winner->config) == config_text(b, b.winner->config);
}

SiteOfRanks compare_site(const SiteReport& usual, const SiteByRank& by_rank,
                         const RegionByRank& regions) {
  SiteOfRanks compared;
  compared.name = usual.name;
  compared.key = usual.key;
  compared.default_config = config_text(usual, 0);
  compared.config = usual.winner->config;
  compared.winner_config = config_text(usual, compared.config);
  compared.reason = usual.winner->reason;
  for (const auto& [rank, region] : regions) {
    const auto site = by_rank.find(rank);
    if (site == by_rank.end() || !same_winner(*site->second, usual)) {
      compared.other_ranks.push_back(rank);
      continue;
    }
    const log::WinnerReport& winner = *site->second->winner;
    if (std::isfinite(winner.default_seconds))
      compared.defaults.seconds[rank] = winner.default_seconds;
    if (std::isfinite(winner.seconds)) compared.winners.seconds[rank] = winner.seconds;
  }
  set_extremes(compared.defaults);
  set_extremes(compared.winners);
  return compared;
}

void add_up(TimesOfRanks& sum, const TimesOfRanks& part) {
  for (const auto& [rank, seconds] : part.seconds) sum.seconds[rank] += seconds;
}

void count_batches(RegionOfRanks& compared, const std::vector<GroupAgreements>& groups) {
  for (const GroupAgreements& group : groups) {
    for (const auto& [question, by_rank] : group.questions) {
      if (was_committed(by_rank)) ++compared.batches;
      if (was_agreed_on(by_rank, group)) ++compared.same_batches;
    }
  }
}

RegionOfRanks compare_region(const std::string& name, const RegionByRank& regions) {
  RegionOfRanks compared;
  compared.name = name;
  std::vector<std::pair<std::string, std::string>> order;  // as the ranks found them
  std::map<std::pair<std::string, std::string>, SiteByRank> sites;
  for (const auto& [rank, region] : regions) {
    for (const SiteReport& site : region->sites) {
      SiteByRank& by_rank = sites[{site.name, site.key}];
      if (by_rank.empty()) order.emplace_back(site.name, site.key);
      by_rank[rank] = &site;
    }
  }
  for (const auto& site_name : order) {
    const SiteByRank& by_rank = sites[site_name];
    const SiteReport* usual = spokesman(by_rank);
    if (usual == nullptr) continue;
    SiteOfRanks site = compare_site(*usual, by_rank, regions);
    const bool complete = site.winners.seconds.size() == regions.size() &&
                          site.defaults.seconds.size() == regions.size();
    if (complete) {
      add_up(compared.defaults, site.defaults);
      add_up(compared.winners, site.winners);
    }
    compared.sites.push_back(std::move(site));
  }
  set_extremes(compared.defaults);
  set_extremes(compared.winners);
  return compared;
}

void compare_regions(RankComparison& comparison) {
  std::vector<std::string> order;
  std::map<std::string, RegionByRank> regions;
  for (const auto& [rank, process] : comparison.ranks) {
    for (const RegionReport& region : process->regions) {
      if (regions[region.name].empty()) order.push_back(region.name);
      regions[region.name][rank] = &region;
    }
  }
  auto agreements = agreements_of(comparison.ranks);
  for (const std::string& name : order)
    count_batches(comparison.regions.emplace_back(compare_region(name, regions[name])),
                  agreements[name]);
}

void sum_up_waits(RankComparison& comparison) {
  std::size_t num_committed = 0;
  for (const auto& [rank, process] : comparison.ranks) {
    for (const SyncReport& sync : process->syncs) {
      WaitOfRank& wait = comparison.waits[rank];
      ++(sync.verdict == "committed" ? wait.committed : wait.aborted);
      if (!std::isfinite(sync.wait_seconds)) continue;
      wait.seconds += sync.wait_seconds;
      wait.longest_seconds = std::max(wait.longest_seconds, sync.wait_seconds);
    }
    // A replay in step meets before and after each of its runs, of which no line is written.
    for (const RegionReport& region : process->regions) {
      if (region.replays.empty() || !std::isfinite(region.replays.back().wait_seconds)) continue;
      WaitOfRank& wait = comparison.waits[rank];
      wait.seconds += region.replays.back().wait_seconds;
      wait.longest_seconds =
          std::max(wait.longest_seconds, region.replays.back().longest_wait_seconds);
    }
    const auto wait = comparison.waits.find(rank);
    if (wait != comparison.waits.end() && wait->second.committed > 0) ++num_committed;
  }
  comparison.together = num_committed > 1;
}

}  // namespace

std::vector<RankComparison> compare_ranks(const std::vector<ProcessReport>& processes) {
  std::vector<RankComparison> comparisons;
  for (RankJob& job : jobs_of(processes)) {
    if (job.ranks.size() < 2) continue;
    RankComparison& comparison = comparisons.emplace_back();
    comparison.runs = std::move(job.runs);
    comparison.ranks = std::move(job.ranks);
    for (const auto& [rank, process] : comparison.ranks) {
      if (process->simulated) comparison.simulated = true;
    }
    compare_regions(comparison);
    sum_up_waits(comparison);
    comparison.differences = differences_of(comparison.ranks);
  }
  return comparisons;
}

std::vector<const ProcessReport*> told_alone(const std::vector<ProcessReport>& processes,
                                             const std::vector<RankComparison>& comparisons) {
  std::set<const ProcessReport*> told;
  for (const RankComparison& comparison : comparisons) {
    if (!comparison.together) continue;
    for (const auto& [rank, process] : comparison.ranks) told.insert(process);
  }
  std::vector<const ProcessReport*> alone;
  for (const ProcessReport& process : processes) {
    if (!told.contains(&process)) alone.push_back(&process);
  }
  return alone;
}

}  // namespace contextune::cli
