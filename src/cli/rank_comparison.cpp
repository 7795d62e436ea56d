#include "cli/rank_comparison.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "cli/summary.hpp"

namespace contextune::cli {
namespace {

using log::ProcessReport;
using log::RegionReport;
using log::SiteReport;
using log::SyncReport;

using Ranks = std::map<int, const ProcessReport*>;
using RanksByValue = std::map<std::string, std::vector<int>>;
using SiteName = std::tuple<std::string, std::string, std::string>;  // region, site, key

bool has_winner(const ProcessReport& process) {
  return std::any_of(process.regions.begin(), process.regions.end(), [](const RegionReport& r) {
    return std::any_of(r.sites.begin(), r.sites.end(),
                       [](const SiteReport& site) { return site.winner.has_value(); });
  });
}

struct Job {
  Ranks ranks;
  std::set<std::string> runs;
  std::string program;
  std::string first_time;  // in this form times compare as texts
  std::string last_time;
};

// Ranks that a launcher started one by one have runs of different names, but run the same program
// at the same time.
bool belongs_to(const ProcessReport& process, const Job& job) {
  if (job.runs.contains(process.run)) return true;
  return !job.ranks.contains(process.rank) && !process.program.empty() &&
         process.program == job.program && process.first_time <= job.last_time &&
         job.first_time <= process.last_time;
}

// Of several processes of one rank, the last that tuned something.
bool goes_before(const ProcessReport& a, const ProcessReport& b) {
  return std::pair(has_winner(a), a.first_time) > std::pair(has_winner(b), b.first_time);
}

void add_to(Job& job, const ProcessReport& process) {
  if (job.runs.empty()) {
    job.program = process.program;
    job.first_time = process.first_time;
    job.last_time = process.last_time;
  }
  job.runs.insert(process.run);
  job.first_time = std::min(job.first_time, process.first_time);
  job.last_time = std::max(job.last_time, process.last_time);
  const ProcessReport*& chosen = job.ranks[process.rank];
  if (chosen == nullptr || goes_before(process, *chosen)) chosen = &process;
}

std::string ranks_text(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  return text;
}

// "9.0 on ranks 0, 1; 8.0 on rank 2", what most ranks have first.
std::string spread_text(const RanksByValue& values) {
  std::vector<std::pair<std::string, std::vector<int>>> sorted(values.begin(), values.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  std::string text;
  for (const auto& [value, ranks] : sorted)
    text += (text.empty() ? "" : "; ") + value + " on " + ranks_text(ranks);
  return text;
}

std::string value_of_most(const RanksByValue& values) {
  const auto most = std::max_element(
      values.begin(), values.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  return most == values.end() ? std::string() : most->first;
}

void note(RankComparison& comparison, const std::string& what, const RanksByValue& values) {
  if (values.size() > 1) comparison.differences.push_back(what + ": " + spread_text(values));
}

void compare_processes(RankComparison& comparison, const Ranks& ranks) {
  using Text = std::string ProcessReport::*;
  const std::pair<const char*, Text> fields[] = {
      {"version of contextune", &ProcessReport::version},
      {"program", &ProcessReport::program},
      {"GPU", &ProcessReport::gpu},
      {"compute capability", &ProcessReport::compute_capability},
      {"driver", &ProcessReport::driver},
      {"mode", &ProcessReport::mode},
      {"regions asked for", &ProcessReport::asked_regions},
      {"clock of launches", &ProcessReport::timer}};
  for (const auto& [name, field] : fields) {
    RanksByValue values;
    for (const auto& [rank, process] : ranks) {
      if (process->started)
        values[(process->*field).empty() ? "none" : process->*field].push_back(rank);
    }
    note(comparison, name, values);
  }
  std::vector<int> missing;
  for (int rank = 0; rank < ranks.rbegin()->first && missing.size() < 16; ++rank) {
    if (!ranks.contains(rank)) missing.push_back(rank);
  }
  if (!missing.empty()) comparison.differences.push_back("no line of " + ranks_text(missing));
}

std::map<SiteName, std::map<int, const SiteReport*>> sites_of(const Ranks& ranks) {
  std::map<SiteName, std::map<int, const SiteReport*>> sites;
  for (const auto& [rank, process] : ranks) {
    for (const RegionReport& region : process->regions) {
      for (const SiteReport& site : region.sites)
        sites[{region.name, site.name, site.key}][rank] = &site;
    }
  }
  return sites;
}

void set_extremes(WinnerOfRanks& winner) {
  const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
  if (winner.seconds.empty()) return;
  const auto [fastest, slowest] =
      std::minmax_element(winner.seconds.begin(), winner.seconds.end(), less);
  winner.fastest = fastest->first;
  winner.slowest = slowest->first;
  if (fastest->second > 0) winner.spread = slowest->second / fastest->second - 1;
}

void compare_sites(RankComparison& comparison, const Ranks& ranks) {
  for (const auto& [name, by_rank] : sites_of(ranks)) {
    const auto& [region, site_name, key] = name;
    const std::string title =
        site_name + (key.empty() ? "" : " (" + key + ")") + " in region " + region;
    RanksByValue configs;
    RanksByValue reasons;
    RanksByValue num_configs;
    WinnerOfRanks winner{region, site_name, key, {}, {}, {}, 0, 0, log::not_known};
    for (const int rank : comparison.ranks) {
      const auto place = by_rank.find(rank);
      const SiteReport* site = place == by_rank.end() ? nullptr : place->second;
      if (site != nullptr && site->num_configs > 0)
        num_configs[std::to_string(site->num_configs)].push_back(rank);
      if (site == nullptr || !site->winner) {
        configs["none"].push_back(rank);
        continue;
      }
      const std::uint32_t config = site->winner->config;
      configs["config-" + std::to_string(config) + " " + config_text(*site, config)].push_back(
          rank);
      reasons[site->winner->reason].push_back(rank);
      if (std::isfinite(site->winner->seconds)) winner.seconds[rank] = site->winner->seconds;
    }
    note(comparison, "number of configs of " + title, num_configs);
    if (reasons.empty()) continue;  // no rank has a winner
    note(comparison, "winner of " + title, configs);
    note(comparison, "reason of the winner of " + title, reasons);
    configs.erase("none");
    winner.config = value_of_most(configs);
    winner.reason = value_of_most(reasons);
    set_extremes(winner);
    comparison.winners.push_back(std::move(winner));
  }
}

void compare_confirms(RankComparison& comparison, const Ranks& ranks) {
  std::map<std::string, RanksByValue> verdicts;
  for (const auto& [rank, process] : ranks) {
    for (const RegionReport& region : process->regions) {
      if (!region.confirms.empty())
        verdicts[region.name][region.confirms.back().verdict].push_back(rank);
    }
  }
  for (const auto& [region, values] : verdicts)
    note(comparison, "last confirmation of region " + region, values);
}

void sum_up_times(RankComparison& comparison) {
  for (const int rank : comparison.ranks) comparison.total_seconds[rank] = 0;
  bool any = false;
  for (const WinnerOfRanks& winner : comparison.winners) {
    if (winner.seconds.size() != comparison.ranks.size()) continue;
    any = true;
    for (const auto& [rank, seconds] : winner.seconds) comparison.total_seconds[rank] += seconds;
  }
  if (!any) return comparison.total_seconds.clear();
  comparison.slowest =
      std::max_element(comparison.total_seconds.begin(), comparison.total_seconds.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; })
          ->first;
}

void compare_syncs(RankComparison& comparison, const Ranks& ranks) {
  std::map<std::pair<std::string, std::uint64_t>, std::map<int, const SyncReport*>> questions;
  for (const auto& [rank, process] : ranks) {
    for (const SyncReport& sync : process->syncs) {
      WaitOfRank& wait = comparison.waits[rank];
      ++wait.questions;
      if (sync.verdict == "committed") ++wait.committed;
      if (std::isfinite(sync.wait_seconds)) {
        wait.seconds += sync.wait_seconds;
        wait.longest_seconds = std::max(wait.longest_seconds, sync.wait_seconds);
      }
      questions[{sync.group, sync.question}][rank] = &sync;
    }
  }
  std::map<std::string, LastAgreement> last;
  for (const auto& [name, by_rank] : questions) {
    const auto& [group, question] = name;
    const std::string title = "question " + std::to_string(question) + " of group " + group;
    RanksByValue verdicts;
    RanksByValue hashes;
    for (const auto& [rank, sync] : by_rank) {
      verdicts[sync->verdict].push_back(rank);
      if (sync->verdict == "committed") hashes[sync->hash].push_back(rank);
    }
    note(comparison, "verdict on " + title, verdicts);
    note(comparison, "hash of what was decided on " + title, hashes);
    if (hashes.empty()) continue;
    const std::string hash = value_of_most(hashes);
    last[group] = {group, question, hash, hashes[hash]};
  }
  for (auto& [group, agreement] : last) comparison.agreements.push_back(std::move(agreement));
}

}  // namespace

std::vector<RankComparison> compare_ranks(const std::vector<ProcessReport>& processes) {
  std::vector<Job> jobs;
  for (const ProcessReport& process : processes) {
    auto job = std::find_if(jobs.begin(), jobs.end(),
                            [&](const Job& known) { return belongs_to(process, known); });
    if (job == jobs.end()) job = jobs.insert(jobs.end(), Job{});
    add_to(*job, process);
  }
  std::vector<RankComparison> comparisons;
  for (const Job& job : jobs) {
    if (job.ranks.size() < 2) continue;
    RankComparison& comparison = comparisons.emplace_back();
    comparison.runs.assign(job.runs.begin(), job.runs.end());
    for (const auto& [rank, process] : job.ranks) {
      comparison.ranks.push_back(rank);
      if (process->simulated) comparison.simulated = true;
    }
    compare_processes(comparison, job.ranks);
    compare_sites(comparison, job.ranks);
    compare_confirms(comparison, job.ranks);
    sum_up_times(comparison);
    compare_syncs(comparison, job.ranks);
  }
  return comparisons;
}

}  // namespace contextune::cli
