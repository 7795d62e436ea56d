#include "cli/store/store_export.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/report/nccl_csv.hpp"
#include "core/trials/stored_winner.hpp"
#include "store/json_text.hpp"

namespace contextune::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* t4_version = "1.0.0";
constexpr double milliseconds = 1e3;

std::string_view invalidity_of(TrialStatus status) {
  switch (status) {
    case TrialStatus::Untried:
      return "constraints";
    case TrialStatus::Measured:
    case TrialStatus::Known:
      return "correct";
    case TrialStatus::LaunchFailed:
    case TrialStatus::NoSample:
    case TrialStatus::Crashed:
    case TrialStatus::TooMuchMemory:
      return "runtime";
    case TrialStatus::CutOff:
    case TrialStatus::TimedOut:
      return "timeout";
    case TrialStatus::WrongResult:
    case TrialStatus::NotCompared:
      return "correctness";
  }
  return "runtime";
}

Json value_json(const Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return *whole;
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  if (const auto* text = std::get_if<std::string>(&value)) return store::to_json_text(*text);
  const double number = std::get<double>(value);
  return std::isfinite(number) ? Json(number) : Json(to_string(value));
}

void add_time(Json& measurements, const char* name, double seconds) {
  if (!std::isfinite(seconds)) return;
  measurements.push_back({{"name", name}, {"value", seconds * milliseconds}, {"unit", "ms"}});
}

Json result_json(const StoredSite& site, const StoredTrial& trial) {
  Json configuration = Json::object();
  for (const auto& [name, value] : trial.config.entries())
    configuration[store::to_json_text(name)] = value_json(value);
  Json runtimes = Json::array();
  if (std::isfinite(trial.seconds)) runtimes.push_back(trial.seconds * milliseconds);
  Json measurements = Json::array();
  add_time(measurements, "time", trial.seconds);
  add_time(measurements, "time_min", trial.low_seconds);
  add_time(measurements, "time_max", trial.high_seconds);
  measurements.push_back({{"name", "samples"}, {"value", trial.samples}, {"unit", ""}});
  return {{"timestamp", site.tuned_at},
          {"configuration", std::move(configuration)},
          {"times", {{"runtimes", std::move(runtimes)}}},
          {"invalidity", invalidity_of(trial.status)},
          {"correctness", trial.status == TrialStatus::WrongResult ? 0 : 1},
          {"measurements", std::move(measurements)},
          {"objectives", Json::array({"time"})},
          {"site", store::to_json_text(site.name)},
          {"key", store::to_json_text(site.key.to_string())}};
}

// As a rank log has it.
log::SiteReport report_of(const StoredSite& site) {
  log::SiteReport report;
  report.name = site.name;
  report.key = site.key.to_string();
  report.provider = "collective";
  report.default_choice = site.default_choice;
  report.winner.emplace();
  report.winner->config = keeps_default(site) ? 0 : 1;
  report.configs.emplace(report.winner->config, site.winner.to_string());
  return report;
}

}  // namespace

std::string t4_json(const store::Entry& entry, const std::string& site, std::size_t& results) {
  Json json = {{"schema_version", t4_version}, {"results", Json::array()}};
  for (const store::EntrySite& known : entry.sites) {
    if (!site.empty() && known.site.name != site) continue;
    for (const StoredTrial& trial : known.site.trials)
      json["results"].push_back(result_json(known.site, trial));
  }
  results = json["results"].size();
  return json.dump(2, ' ', true) + "\n";
}

std::string stored_nccl_csv(const store::Entry& entry, const std::string& site, std::size_t& rows,
                            std::size_t& unknown) {
  std::vector<log::SiteReport> reports;
  unknown = 0;
  for (const store::EntrySite& known : entry.sites) {
    if (!is_collective(known.site.name) || (!site.empty() && known.site.name != site)) continue;
    reports.push_back(report_of(known.site));
    if (keeps_default(known.site) && known.site.default_choice.empty()) ++unknown;
  }
  std::vector<const log::SiteReport*> sites;
  sites.reserve(reports.size());
  for (const log::SiteReport& report : reports) sites.push_back(&report);
  return nccl_csv(sites, rows);
}

}  // namespace contextune::cli
