#include "cli/page/page_data.hpp"

#include <algorithm>
#include <cmath>
#include <contextune/version.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "cli/page/region_data.hpp"
#include "cli/report/config_times.hpp"
#include "cli/report/rank_comparison.hpp"
#include "cli/report/rank_differences.hpp"
#include "cli/report/summary.hpp"
#include "core/value/fallback_reason.hpp"

namespace contextune::cli {
namespace {

using Json = nlohmann::ordered_json;
using Ranks = std::map<int, const log::ProcessReport*>;

constexpr int schema = 1;
constexpr std::size_t most_listed_bad_lines = 50;
/// Fallbacks, faults and differences of one job that a page lists.
constexpr std::size_t most_listed_troubles = 2000;

/// The ranks of one job, or one process of none.
struct JobOfPage {
  Ranks ranks;
  const RankComparison* comparison = nullptr;  ///< null: one process
};

// Jobs that tuned something come first: a program starts helpers, which only begin a log.
std::vector<JobOfPage> jobs_of_page(const std::vector<log::ProcessReport>& processes,
                                    const std::vector<RankComparison>& comparisons) {
  std::vector<JobOfPage> jobs;
  std::set<const log::ProcessReport*> told;
  for (const RankComparison& comparison : comparisons) {
    jobs.push_back({comparison.ranks, &comparison});
    for (const auto& [rank, process] : comparison.ranks) told.insert(process);
  }
  for (const log::ProcessReport& process : processes)
    if (!told.contains(&process)) jobs.push_back({{{process.rank, &process}}, nullptr});
  const auto has_regions = [](const JobOfPage& job) {
    return std::ranges::any_of(job.ranks,
                               [](const auto& rank) { return !rank.second->regions.empty(); });
  };
  std::ranges::stable_partition(jobs, has_regions);
  return jobs;
}

Json process_data(const log::ProcessReport& of, StringTable& strings) {
  Json json = {{"rank", of.rank},
               {"run", strings.place_of(of.run)},
               {"pid", of.pid},
               {"first", strings.place_of(of.first_time)},
               {"last", strings.place_of(of.last_time)},
               {"version", strings.place_of(of.version)},
               {"program", strings.place_of(of.program)},
               {"gpu", strings.place_of(of.gpu)},
               {"capability", strings.place_of(of.compute_capability)},
               {"sms", of.num_sms},
               {"driver", strings.place_of(of.driver)},
               {"mode", strings.place_of(of.mode)},
               {"asked", strings.place_of(of.asked_regions)},
               {"timer", strings.place_of(of.timer)},
               {"simulated", of.simulated},
               {"world", of.world_size}};
  if (!of.command.empty()) json["command"] = strings.place_of(of.command);
  for (const log::ParsedField& option : parameters_of(of.options))
    json["options"].push_back({strings.place_of(option.name), strings.place_of(option.value)});
  if (of.launches_outside) json["outside"] = *of.launches_outside;
  return json;
}

/// What ranks say alike is listed once, with the ranks that say it.
class Troubles {
 public:
  explicit Troubles(StringTable& strings) : strings_(strings) {}

  void add(const log::ProcessReport& process, std::size_t rank) {
    for (const log::FallbackReport& one : process.fallbacks)
      add(one.reason, one.region, one.site, one.text, one.count, rank);
    for (const std::string& fault : process.faults) add("fault", "", "", fault, 1, rank);
    for (const std::string& region : regions_never_entered(process))
      add("region_never_entered", region, "", "", 1, rank);
  }
  [[nodiscard]] Json take() { return std::move(list_); }

 private:
  void add(const std::string& reason, const std::string& region, const std::string& site,
           const std::string& text, std::uint64_t count, std::size_t rank) {
    const FallbackInfo* const info = find_fallback(reason);
    const std::string said = text.empty() && info != nullptr ? std::string(info->sentence) : text;
    std::string key = reason + '\0' + region + '\0' + site + '\0' + said;
    const auto [place, fresh] = places_.emplace(std::move(key), list_.size());
    if (fresh) {
      if (list_.size() >= most_listed_troubles) {
        places_.erase(place);
        return;
      }
      list_.push_back({{"reason", strings_.place_of(reason)},
                       {"region", strings_.place_of(region)},
                       {"site", strings_.place_of(site)},
                       {"text", shown_lines(said)},
                       {"count", 0},
                       {"ranks", Json::array()}});
    }
    Json& entry = list_[place->second];
    entry["count"] = entry["count"].get<std::uint64_t>() + count;
    if (entry["ranks"].empty() || entry["ranks"].back() != rank) entry["ranks"].push_back(rank);
  }

  StringTable& strings_;
  Json list_ = Json::array();
  std::map<std::string, std::size_t> places_;
};

Json waits_data(const RankComparison& comparison) {
  Json list = Json::array();
  for (const auto& [rank, process] : comparison.ranks) {
    const auto wait = comparison.waits.find(rank);
    if (wait == comparison.waits.end()) {
      list.push_back(Json());
    } else {
      list.push_back({wait->second.committed, wait->second.aborted, wait->second.seconds,
                      wait->second.longest_seconds});
    }
  }
  return list;
}

Json job_data(const JobOfPage& job, StringTable& strings, PageRoom& room) {
  Json json = {{"together", job.comparison != nullptr && job.comparison->together},
               {"ranks", Json::array()}};
  std::vector<const log::ProcessReport*> processes;
  Troubles troubles(strings);
  for (const auto& [rank, process] : job.ranks) {
    json["ranks"].push_back(process_data(*process, strings));
    troubles.add(*process, processes.size());
    processes.push_back(process);
  }
  json["regions"] = Json::array();
  for (const RegionOfJob& region : regions_of(job.ranks))
    json["regions"].push_back(region_data(region, processes, strings, room));
  json["troubles"] = troubles.take();
  json["missing"] = strings.place_of(missing_ranks(job.ranks));
  json["differences"] = Json::array();
  if (job.comparison == nullptr) return json;
  json["waits"] = waits_data(*job.comparison);
  for (const std::string& one : job.comparison->differences) {
    if (json["differences"].size() >= most_listed_troubles) break;
    json["differences"].push_back(strings.place_of(one));
  }
  return json;
}

// Of the reasons that are named alone.
Json reasons_data(const std::vector<log::ProcessReport>& processes) {
  Json reasons = Json::object();
  const auto add = [&](const FallbackInfo* info) {
    if (info != nullptr)
      reasons[std::string(info->word)] = {info->sentence, info->cause, info->remedy};
  };
  for (const log::ProcessReport& process : processes)
    for (const log::FallbackReport& fallback : process.fallbacks)
      add(find_fallback(fallback.reason));
  add(find_fallback("region_never_entered"));
  return reasons;
}

Json bad_lines_data(const LogContents& contents) {
  Json lines = Json::array();
  for (const log::BadLine& line : contents.bad_lines) {
    if (lines.size() >= most_listed_bad_lines) break;
    lines.push_back(shown_text(line.to_string()));
  }
  return {{"count", contents.num_bad_lines}, {"lines", lines}};
}

// In JSON a "<" stands in texts alone, and there it may be written as a number.
std::string without_markup(std::string json) {
  std::string safe;
  safe.reserve(json.size() + json.size() / 64);
  for (const char c : json) {
    if (c == '<' || c == '>' || c == '&') {
      safe += c == '<' ? "\\u003c" : c == '>' ? "\\u003e" : "\\u0026";
    } else {
      safe += c;
    }
  }
  return safe;
}

}  // namespace

std::string page_data(const LogContents& contents) {
  StringTable strings;
  PageRoom room;
  const std::vector<RankComparison> comparisons = compare_ranks(contents.processes);
  Json json = {{"schema", schema},
               {"version", CONTEXTUNE_VERSION},
               {"folder", shown_text(contents.folder)},
               {"other_runs", Json::array()},
               {"bad_lines", bad_lines_data(contents)},
               {"reasons", reasons_data(contents.processes)},
               {"jobs", Json::array()}};
  for (const std::string& run : contents.other_runs) json["other_runs"].push_back(shown_text(run));
  for (const JobOfPage& job : jobs_of_page(contents.processes, comparisons))
    json["jobs"].push_back(job_data(job, strings, room));
  json["strings"] = strings.texts();
  return without_markup(json.dump(-1, ' ', true, Json::error_handler_t::replace));
}

}  // namespace contextune::cli
