#include <algorithm>
#include <cmath>
#include <contextune/error.hpp>
#include <map>
#include <set>

#include "cli/compare/side.hpp"
#include "cli/report/nccl_csv.hpp"
#include "cli/report/rank_job.hpp"
#include "cli/report/summary.hpp"
#include "core/trials/statistics.hpp"
#include "log/logfmt.hpp"

namespace contextune::cli {
namespace {

using log::ConfirmReport;
using log::ProcessReport;
using log::RegionReport;
using log::SiteReport;
using log::TrialReport;

using SitesOfRanks = std::map<int, const SiteReport*>;
using RegionsOfRanks = std::map<int, const RegionReport*>;

std::string key_without(const std::string& key, const std::set<std::string_view>& names) {
  std::string rest;
  for (const auto& [name, value] : values_in(key))
    if (!names.contains(name)) log::append_field(rest, name, value);
  return rest;
}

// Ranks of a job have a device each, and one site in common.
std::string shared_key(const std::string& key, std::size_t num_ranks) {
  return num_ranks > 1 ? key_without(key, {"device"}) : key;
}

bool is_sample(const TrialReport& trial, std::uint32_t config) {
  return trial.config == config && trial.iteration >= 0 && trial.status.empty() &&
         trial.seconds > 0 && std::isfinite(trial.seconds);
}

std::vector<double> samples_of(const SiteReport& site, std::uint32_t config) {
  std::vector<double> samples;
  for (const TrialReport& trial : site.trials)
    if (is_sample(trial, config)) samples.push_back(trial.seconds);
  return samples;
}

double clock_of(const SiteReport& site) {
  std::vector<double> values;
  for (const TrialReport& trial : site.trials)
    if (is_sample(trial, trial.config)) values.push_back(trial.seconds);
  return resolution_of(std::move(values));
}

/// A config of a site on every rank that has it, each with its number there.
using ConfigsOfRanks = std::map<int, std::uint32_t>;

// In a pass that all ranks made, the slowest one's time is the time of all; of a collective, in
// which the others wait, that of the rank that waited least.
std::vector<double> samples_in_step(const SitesOfRanks& sites, const ConfigsOfRanks& configs) {
  std::map<std::uint64_t, std::vector<double>> passes;
  for (const auto& [rank, config] : configs) {
    for (const TrialReport& trial : sites.at(rank)->trials)
      if (trial.agreed && is_sample(trial, config)) passes[trial.pass].push_back(trial.seconds);
  }
  const bool is_shared = is_collective(sites.begin()->second->name);
  std::vector<double> samples;
  for (const auto& [pass, seconds] : passes) {
    if (seconds.size() != configs.size()) continue;
    samples.push_back(is_shared ? *std::ranges::min_element(seconds)
                                : *std::ranges::max_element(seconds));
  }
  return samples;
}

MeasuredTime time_of(std::vector<double> samples, double resolution) {
  MeasuredTime time;
  time.median = median(samples);
  time.count = samples.size();
  time.samples = std::move(samples);
  time.resolution = resolution;
  return time;
}

// Without samples of this run, what its winner line says.
MeasuredTime time_without_samples(double seconds, const SiteReport& site) {
  MeasuredTime time;
  time.median = seconds;
  const std::string reason = site.winner ? site.winner->reason : "";
  time.lacking = reason == "stored" ? "no samples, the winner is stored" : "no samples";
  return time;
}

/// @param seconds_of the figure of a rank's winner line
template <class SecondsOf>
MeasuredTime slowest_time(const SitesOfRanks& sites, const ConfigsOfRanks& configs,
                          SecondsOf&& seconds_of) {
  MeasuredTime slowest;
  for (const auto& [rank, config] : configs) {
    const SiteReport& site = *sites.at(rank);
    std::vector<double> samples = samples_of(site, config);
    MeasuredTime time = samples.empty() ? time_without_samples(seconds_of(site), site)
                                        : time_of(std::move(samples), clock_of(site));
    time.rank = rank;
    if (slowest.rank < 0 || !(time.median <= slowest.median)) slowest = std::move(time);
  }
  if (configs.size() < 2) return slowest;
  std::vector<double> in_step = samples_in_step(sites, configs);
  if (in_step.size() < fewest_samples) return slowest;
  MeasuredTime time = time_of(std::move(in_step), slowest.resolution);
  return time;
}

ComparedSite compared_site(const SitesOfRanks& sites, const std::string& key) {
  ComparedSite compared;
  const SiteReport& first = *sites.begin()->second;
  compared.name = first.name;
  compared.key = key;
  compared.loose_key = key_without(key, {"code", "device"});
  ConfigsOfRanks defaults;
  ConfigsOfRanks winners;
  for (const auto& [rank, site] : sites) {
    defaults[rank] = 0;
    if (site->winner) winners[rank] = site->winner->config;
  }
  compared.by_default = slowest_time(sites, defaults, [](const SiteReport& site) {
    return site.winner ? site.winner->default_seconds : log::not_known;
  });
  if (winners.size() < sites.size()) {
    compared.settled.lacking = "not decided";
    return compared;
  }
  compared.settled =
      slowest_time(sites, winners, [](const SiteReport& site) { return site.winner->seconds; });
  const SiteReport& shown = compared.settled.rank < 0 ? first : *sites.at(compared.settled.rank);
  compared.winner.emplace();
  compared.winner->text = config_text(shown, shown.winner->config);
  if (const auto found = shown.configs.find(shown.winner->config); found != shown.configs.end())
    compared.winner->parameters = values_in(found->second);
  compared.winner->is_default = shown.winner->config == 0;
  compared.ranks_differ = std::ranges::any_of(sites, [&](const auto& of_rank) {
    return config_text(*of_rank.second, of_rank.second->winner->config) != compared.winner->text;
  });
  return compared;
}

ComparedGain compared_gain(const ConfirmReport& confirm) {
  const bool is_skipped = confirm.verdict == "skipped";
  return {confirm.site,
          confirm.verdict,
          {confirm.gain, confirm.bound, confirm.pairs, confirm.verdict == "defaults",
           is_skipped ? "not compared with the defaults" : ""}};
}

// The last word about the region, and about each site that is confirmed alone. Of several ranks,
// that of the rank whose region takes the longest.
std::vector<ComparedGain> compared_gains(const RegionsOfRanks& regions) {
  std::vector<std::string> order;
  std::map<std::string, const ConfirmReport*> of_site;
  for (const auto& [rank, region] : regions) {
    std::map<std::string, const ConfirmReport*> last;
    const auto take = [&](const ConfirmReport& confirm) {
      const ConfirmReport*& known = last[confirm.site];
      if (known == nullptr || confirm.verdict != "skipped") known = &confirm;
    };
    if (region->stored_confirm) take(*region->stored_confirm);
    for (const ConfirmReport& confirm : region->confirms) take(confirm);
    for (const auto& [site, confirm] : last) {
      const ConfirmReport*& known = of_site[site];
      if (known == nullptr) order.push_back(site);
      if (known == nullptr || confirm->after_seconds > known->after_seconds) known = confirm;
    }
  }
  std::vector<ComparedGain> gains;
  for (const std::string& site : order) gains.push_back(compared_gain(*of_site[site]));
  return gains;
}

bool is_found(const RegionsOfRanks& regions) {
  return std::ranges::any_of(regions, [](const auto& of_rank) {
    return of_rank.second->submission.has_value() || !of_rank.second->found.empty();
  });
}

// Launches of a region that was found have no times, only a gain, and that only of a settled way.
void tell_launches(const RegionsOfRanks& regions, ComparedRegion& compared) {
  for (const auto& [rank, region] : regions) {
    if (!region->submission) continue;
    compared.launches = {region->submission->launches, region->submission->state};
    break;
  }
  const bool as_written = compared.launches && compared.launches->launches == "as written";
  if (compared.gains.empty()) compared.gains.emplace_back();
  MeasuredGain& figures = compared.gains.front().figures;
  if (as_written) {
    figures = {};
    figures.is_none = true;
  } else if (std::isnan(figures.gain) && !figures.is_none) {
    figures.lacking = "no way of launching was compared";
  }
}

ComparedRegion compared_region(const std::string& name, const RegionsOfRanks& regions,
                               std::size_t num_ranks) {
  ComparedRegion compared;
  compared.kind = "region";
  compared.name = name;
  compared.gains = compared_gains(regions);
  if (is_found(regions)) {
    tell_launches(regions, compared);
    return compared;
  }
  std::vector<std::pair<std::string, std::string>> order;
  std::map<std::pair<std::string, std::string>, SitesOfRanks> sites;
  for (const auto& [rank, region] : regions) {
    for (const SiteReport& site : region->sites) {
      const auto named = std::pair(site.name, shared_key(site.key, num_ranks));
      SitesOfRanks& of_ranks = sites[named];
      if (of_ranks.empty()) order.push_back(named);
      of_ranks.emplace(rank, &site);
    }
  }
  for (const auto& named : order)
    compared.sites.push_back(compared_site(sites[named], named.second));
  note_defaults(compared);
  return compared;
}

void add_fact(ComparedSide& side, const char* name, const std::string& value) {
  if (!value.empty()) side.facts.emplace_back(name, value);
}

// Of several jobs that were selected, that of the last line.
const RankJob& last_job(const std::vector<RankJob>& jobs) {
  const auto end_of = [](const RankJob& job) {
    std::string last;
    for (const auto& [rank, process] : job.ranks) last = std::max(last, process->last_time);
    return last;
  };
  return *std::ranges::max_element(
      jobs, [&](const RankJob& a, const RankJob& b) { return end_of(a) < end_of(b); });
}

}  // namespace

ComparedSide side_of_log(const std::string& where, const LogContents& contents) {
  const std::vector<RankJob> jobs = jobs_of(contents.processes);
  if (jobs.empty()) throw Error(where + ": no line of its logs can be read");
  const RankJob& job = last_job(jobs);
  ComparedSide side;
  side.where = where;
  side.runs = job.runs;
  side.num_ranks = job.ranks.size();
  const ProcessReport& first = *job.ranks.begin()->second;
  side.time = first.first_time;
  add_fact(side, "program", first.program);
  add_fact(side, "GPU", first.gpu);
  add_fact(side, "SMs", first.num_sms > 0 ? std::to_string(first.num_sms) : "");
  add_fact(side, "driver", first.driver);
  add_fact(side, "timer", first.timer);
  add_fact(side, "contextune", first.version);
  std::vector<std::string> order;
  std::map<std::string, RegionsOfRanks> regions;
  for (const auto& [rank, process] : job.ranks) {
    side.simulated = side.simulated || process->simulated;
    side.is_real = side.is_real || !process->simulated;
    if (process->gpu != first.gpu) side.problems.push_back(where + ": its ranks have several GPUs");
    for (const RegionReport& region : process->regions) {
      RegionsOfRanks& of_ranks = regions[region.name];
      if (of_ranks.empty()) order.push_back(region.name);
      of_ranks.emplace(rank, &region);
    }
  }
  for (const std::string& name : order) {
    side.regions.push_back(compared_region(name, regions[name], side.num_ranks));
    side.regions.back().simulated = side.simulated;
  }
  return side;
}

}  // namespace contextune::cli
