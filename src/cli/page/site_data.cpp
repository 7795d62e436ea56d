#include "cli/page/site_data.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/page/columns.hpp"
#include "cli/report/config_times.hpp"
#include "cli/report/summary.hpp"

namespace contextune::cli {
namespace {

using Json = nlohmann::ordered_json;
using log::SiteReport;

/// What all ranks together know of one config.
struct ConfigOfJob {
  std::string text;             ///< "block=256 per_sm=4"; empty: as launched
  std::vector<double> samples;  ///< of all ranks, ascending
  std::vector<double> medians;  ///< by rank
  std::string status;           ///< why a rank has no time of it
  std::size_t without = 0;      ///< ranks that have no time of it
};

using Configs = std::map<std::uint32_t, ConfigOfJob>;

Configs configs_of(const SiteOfJob& site) {
  Configs configs;
  const std::size_t num_ranks = site.by_rank.size();
  for (std::size_t rank = 0; rank < num_ranks; ++rank) {
    const SiteReport* const report = site.by_rank[rank];
    if (report == nullptr) continue;
    for (const ConfigTimes& times : configs_by_time(*report)) {
      ConfigOfJob& config = configs[times.config];
      config.medians.resize(num_ranks, log::not_known);
      config.medians[rank] = times.median;
      if (std::isfinite(times.median) && times.status.empty()) continue;
      config.status = times.status;
      if (!std::isfinite(times.median)) ++config.without;
    }
    for (const log::TrialReport& trial : report->trials) {
      const bool counts = trial.iteration >= 0 && trial.status.empty();
      if (counts && std::isfinite(trial.seconds))
        configs[trial.config].samples.push_back(trial.seconds);
    }
    for (const auto& [number, text] : report->configs)
      if (configs[number].text.empty()) configs[number].text = text;
  }
  for (auto& [number, config] : configs) {
    config.medians.resize(num_ranks, log::not_known);
    std::ranges::sort(config.samples);
  }
  return configs;
}

double quantile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return log::not_known;
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

// Of a site that was not measured here, as where the winner was stored: the middle of the ranks.
double median_of_job(const ConfigOfJob& config) {
  if (!config.samples.empty()) return quantile(config.samples, 0.5);
  std::vector<double> known;
  std::ranges::copy_if(config.medians, std::back_inserter(known),
                       [](double seconds) { return std::isfinite(seconds); });
  std::ranges::sort(known);
  return quantile(known, 0.5);
}

/// A parameter and its value in each config, by place in the table of strings.
struct Parameter {
  std::string name;
  std::vector<std::size_t> values;  ///< 0: the config has none
};

std::vector<Parameter> parameters_of_job(const Configs& configs, StringTable& strings) {
  std::vector<Parameter> parameters;
  std::size_t place = 0;
  for (const auto& [number, config] : configs) {
    for (const log::ParsedField& field : parameters_of(config.text)) {
      auto known = std::ranges::find(parameters, field.name, &Parameter::name);
      if (known == parameters.end()) known = parameters.insert(known, Parameter{field.name, {}});
      known->values.resize(configs.size());
      known->values[place] = strings.place_of(field.value);
    }
    ++place;
  }
  return parameters;
}

// Whether configs differ in it, those apart that have no parameter at all: they are as launched.
bool varies(const Parameter& parameter, const Configs& configs) {
  std::set<std::size_t> values;
  std::size_t with_any = 0;
  std::size_t place = 0;
  for (const auto& [number, config] : configs) {
    if (!config.text.empty()) {
      values.insert(parameter.values[place]);
      ++with_any;
    }
    ++place;
  }
  return with_any < 2 || values.size() > 1;
}

// The rank that knows most of it speaks for all in what they have in common.
const SiteReport& speaker(const SiteOfJob& site) {
  const SiteReport* most = nullptr;
  for (const SiteReport* report : site.by_rank)
    if (report != nullptr && (most == nullptr || report->configs.size() > most->configs.size()))
      most = report;
  return *most;
}

void add_configs(Json& json, const Configs& configs, StringTable& strings, TimeRoom& room) {
  std::vector<std::uint64_t> numbers;
  std::vector<std::uint64_t> counts;
  std::vector<double> quantiles;
  std::size_t num_samples = 0;
  Json statuses = Json::object();
  for (const auto& [number, config] : configs) {
    const std::size_t place = numbers.size();
    numbers.push_back(number);
    counts.push_back(config.samples.size());
    num_samples += config.samples.size();
    for (const double share : {0.0, 0.25}) quantiles.push_back(quantile(config.samples, share));
    quantiles.push_back(median_of_job(config));
    for (const double share : {0.75, 1.0}) quantiles.push_back(quantile(config.samples, share));
    if (!config.status.empty())
      statuses[std::to_string(place)] = {strings.place_of(config.status), config.without};
  }
  json["configs"] = number_column(numbers);
  json["counts"] = number_column(counts);
  json["quantiles"] = time_column(quantiles);
  json["statuses"] = statuses;
  if (num_samples > room.samples) return;
  room.samples -= num_samples;
  std::vector<double> samples;
  for (const auto& [number, config] : configs)
    samples.insert(samples.end(), config.samples.begin(), config.samples.end());
  json["samples"] = time_column(samples);
}

void add_winners(Json& json, const SiteOfJob& site, StringTable& strings) {
  std::vector<std::uint64_t> winners;  // 0: none
  std::vector<double> seconds;
  std::vector<double> default_seconds;
  Json reasons = Json::array();
  for (const SiteReport* report : site.by_rank) {
    const bool has = report != nullptr && report->winner.has_value();
    winners.push_back(has ? std::uint64_t{report->winner->config} + 1 : 0);
    seconds.push_back(has ? report->winner->seconds : log::not_known);
    default_seconds.push_back(has ? report->winner->default_seconds : log::not_known);
    reasons.push_back(has ? strings.place_of(report->winner->reason) : 0);
  }
  json["winners"] = number_column(winners);
  json["winner_times"] = time_column(seconds);
  json["default_times"] = time_column(default_seconds);
  json["reasons"] = reasons;
}

}  // namespace

Json site_data(const SiteOfJob& site, StringTable& strings, TimeRoom& room) {
  const SiteReport& usual = speaker(site);
  const Configs configs = configs_of(site);
  Json json = {{"label", strings.place_of(site.label)},
               {"name", strings.place_of(usual.name)},
               {"key", strings.place_of(usual.key)},
               {"provider", strings.place_of(usual.provider)},
               {"grid", strings.place_of(usual.grid)},
               {"block", strings.place_of(usual.block)},
               {"declared", usual.num_configs},
               {"default", strings.place_of(config_text(usual, 0))}};
  add_configs(json, configs, strings, room);
  json["parameters"] = Json::array();
  std::string common;
  for (const Parameter& parameter : parameters_of_job(configs, strings)) {
    if (varies(parameter, configs)) {
      const std::vector<std::uint64_t> values(parameter.values.begin(), parameter.values.end());
      json["parameters"].push_back({strings.place_of(parameter.name), number_column(values)});
    } else {
      const auto value =
          std::ranges::find_if(parameter.values, [](std::size_t one) { return one != 0; });
      if (value != parameter.values.end())
        common += (common.empty() ? "" : " ") + parameter.name + "=" + strings.texts()[*value];
    }
  }
  json["common"] = strings.place_of(common);
  add_winners(json, site, strings);
  std::vector<double> medians;
  const std::size_t num_medians = site.by_rank.size() * configs.size();
  if (site.by_rank.size() > 1 && num_medians <= room.medians) {
    room.medians -= num_medians;
    for (const auto& [number, config] : configs)
      medians.insert(medians.end(), config.medians.begin(), config.medians.end());
  }
  json["medians"] = time_column(medians);
  return json;
}

}  // namespace contextune::cli
