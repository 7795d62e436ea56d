#include "cli/logs/log_json.hpp"

#include <nlohmann/json.hpp>

#include "cli/report/iteration_table.hpp"
#include "cli/report/rank_comparison.hpp"
#include "cli/report/region_mode.hpp"
#include "log/line_time.hpp"

/// Members of `of` under their own names, in this order. NaN is written as null.
#define CONTEXTUNE_MEMBER(name) json[#name] = of.name;
#define CONTEXTUNE_MEMBERS(...) \
  NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(CONTEXTUNE_MEMBER, __VA_ARGS__))
/// A struct that is written as its members.
#define CONTEXTUNE_JSON(type, ...)                  \
  static void to_json(Json& json, const type& of) { \
    CONTEXTUNE_MEMBERS(__VA_ARGS__)                 \
  }

namespace contextune {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(std::string_view text) {
  return text.empty() ? Json() : Json(text);
}

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

template <class Key, class Value>
Json by_number(const std::map<Key, Value>& values) {
  Json json = Json::object();
  for (const auto& [number, value] : values) json[std::to_string(number)] = value;
  return json;
}

}  // namespace

// The JSON library looks for to_json() in the namespace of the type.
namespace log {

CONTEXTUNE_JSON(WinnerReport, config, seconds, default_seconds, reason)
CONTEXTUNE_JSON(LeftOutReport, site, key, verdict, before_seconds, after_seconds, gain, bound,
                pairs)
CONTEXTUNE_JSON(KernelReport, name, key, launches, seconds, grid, block, shared_bytes, registers,
                params, timer)
CONTEXTUNE_JSON(FallbackReport, reason, region, site, text, count)
CONTEXTUNE_JSON(BadLine, file, line, reason)

static void to_json(Json& json, const TrialReport& of) {
  CONTEXTUNE_MEMBERS(pass, config, iteration);
  json["counts"] = of.iteration >= 0 && of.status.empty();
  CONTEXTUNE_MEMBERS(launches, seconds, region_seconds, timer, agreed, sm_clock_hz);
  json["began"] = of.has_begin ? Json(microseconds_text(of.at)) : Json();
  json["status"] = of.status.empty() ? "measured" : of.status;
}

static void to_json(Json& json, const PassesReport& of) {
  CONTEXTUNE_MEMBERS(first, last);
  json["config"] = or_null(of.config);
  CONTEXTUNE_MEMBERS(agreed);
}

static void to_json(Json& json, const SiteReport& of) {
  CONTEXTUNE_MEMBERS(name, key, num_configs, grid, block, provider);
  json["configs"] = by_number(of.configs);
  json["winner"] = or_null(of.winner);
  CONTEXTUNE_MEMBERS(trials, passes);
}

static void to_json(Json& json, const ConfirmReport& of) {
  CONTEXTUNE_MEMBERS(verdict);
  json["site"] = or_null(of.site);
  CONTEXTUNE_MEMBERS(before_seconds, after_seconds, gain, bound, pairs, tries);
}

static void to_json(Json& json, const ReplayReport& of) {
  CONTEXTUNE_MEMBERS(visit, operations, replays, seconds, footprint_bytes, dirty_bytes,
                     device_bytes, host_bytes, save_seconds, restore_seconds, hash_seconds);
  json["timed_after"] = or_null(of.timed_after);
  json["why_restored"] = or_null(of.why_restored);
}

static void to_json(Json& json, const SubmissionEvent& of) {
  CONTEXTUNE_MEMBERS(launches, state);
  json["run"] = of.run > 0 ? Json(of.run) : Json();
  CONTEXTUNE_MEMBERS(most_runs, chained, held, batches, late, graph_launches, in_graphs, graphs,
                     chained_graphs, chained_graph_launches, chained_edges, images, kernels,
                     images_left, images_unneeded, kept_bytes, load_seconds, graph_bytes, ordinary,
                     screened, why);
}

static void to_json(Json& json, const SyncReport& of) {
  CONTEXTUNE_MEMBERS(region, group, group_rank, question);
  json["hash"] = or_null(of.hash);
  CONTEXTUNE_MEMBERS(wait_seconds, verdict);
  json["text"] = or_null(of.text);
}

}  // namespace log

namespace cli {

static void to_json(Json& json, const TimesOfRanks& of) {
  json = {{"seconds", by_number(of.seconds)},
          {"fastest_rank", of.fastest < 0 ? Json() : Json(of.fastest)},
          {"slowest_rank", of.slowest < 0 ? Json() : Json(of.slowest)},
          {"spread", of.spread}};
}

CONTEXTUNE_JSON(IterationTable::Row, pass, cells)
CONTEXTUNE_JSON(SiteOfRanks, name, key, default_config, config, winner_config, reason, defaults,
                winners, other_ranks)
CONTEXTUNE_JSON(RegionOfRanks, name, batches, same_batches, defaults, winners, sites)
CONTEXTUNE_JSON(WaitOfRank, committed, aborted, seconds, longest_seconds)

static void to_json(Json& json, const IterationTable& of) {
  if (of.is_too_large) return;
  CONTEXTUNE_MEMBERS(sites, rows);
}

static void to_json(Json& json, const RankComparison& of) {
  CONTEXTUNE_MEMBERS(runs);
  json["ranks"] = Json::array();
  for (const auto& [rank, process] : of.ranks) json["ranks"].push_back(rank);
  CONTEXTUNE_MEMBERS(simulated, together, regions);
  json["waits"] = by_number(of.waits);
  CONTEXTUNE_MEMBERS(differences);
}

static Json region_json(const RegionModes& modes, const log::RegionReport& of) {
  const RegionMode mode = modes.of(of);
  Json json = {{"name", of.name},
               {"found", or_null(of.found)},
               {"submission", or_null(of.submission)},
               {"mode", or_null(mode.word)},
               {"why_live", mode.why != nullptr ? Json(mode.why->reason) : Json()}};
  CONTEXTUNE_MEMBERS(stage, passes);
  json["entries"] = of.entries > 0 ? Json(of.entries) : Json();
  CONTEXTUNE_MEMBERS(tuning_seconds, replays, confirms);
  json["stored_confirm"] = or_null(of.stored_confirm);
  CONTEXTUNE_MEMBERS(left_out, sites, kernels, periods);
  json["ranges"] = or_null(of.ranges);
  json["table"] = iteration_table(of);
  return json;
}

static Json process_json(const log::ProcessReport& of) {
  Json json;
  CONTEXTUNE_MEMBERS(run, rank, pid, first_time, last_time, version, program, host, gpu,
                     compute_capability, num_sms, world_size, driver, simulated, mode,
                     asked_regions, timer);
  json["launches_outside"] = or_null(of.launches_outside);
  json["regions"] = Json::array();
  const RegionModes modes(of);
  for (const auto& region : of.regions) json["regions"].push_back(region_json(modes, region));
  CONTEXTUNE_MEMBERS(syncs, fallbacks, faults);
  return json;
}

std::string to_json(const LogContents& contents) {
  Json json = {{"schema", 1},
               {"folder", contents.folder},
               {"processes", Json::array()},
               {"comparisons", compare_ranks(contents.processes)},
               {"other_runs", contents.other_runs},
               {"num_lines", contents.num_records},
               {"num_bad_lines", contents.num_bad_lines},
               {"bad_lines", contents.bad_lines}};
  for (const auto& process : contents.processes) json["processes"].push_back(process_json(process));
  // A log may hold bytes that are not UTF-8, which JSON may not, and characters that a terminal
  // takes for commands: all but ASCII is escaped.
  return json.dump(2, ' ', true, Json::error_handler_t::replace);
}

}  // namespace cli
}  // namespace contextune
