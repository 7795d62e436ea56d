#include "cli/logs/log_json.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/report/iteration_table.hpp"
#include "cli/report/rank_comparison.hpp"
#include "cli/report/region_mode.hpp"

namespace contextune::cli {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json to_json(const log::TrialReport& trial) {
  return {{"pass", trial.pass},
          {"config", trial.config},
          {"iteration", trial.iteration},
          {"counts", trial.iteration >= 0 && trial.status.empty()},
          {"launches", trial.launches},
          {"seconds", number(trial.seconds)},
          {"timer", trial.timer},
          {"agreed", trial.agreed},
          {"sm_clock_hz", number(trial.sm_clock_hz)},
          {"status", trial.status.empty() ? "measured" : trial.status}};
}

Json to_json(const log::PassesReport& passes) {
  return {{"first", passes.first},
          {"last", passes.last},
          {"config", passes.config ? Json(*passes.config) : Json(nullptr)},
          {"agreed", passes.agreed}};
}

Json to_json(const log::SiteReport& site) {
  Json json = {
      {"name", site.name},         {"key", site.key},     {"num_configs", site.num_configs},
      {"grid", site.grid},         {"block", site.block}, {"provider", site.provider},
      {"configs", Json::object()}, {"winner", nullptr},   {"trials", Json::array()},
      {"passes", Json::array()}};
  for (const auto& [config, parameters] : site.configs) {
    json["configs"][std::to_string(config)] = parameters;
  }
  if (site.winner) {
    json["winner"] = {{"config", site.winner->config},
                      {"seconds", number(site.winner->seconds)},
                      {"default_seconds", number(site.winner->default_seconds)},
                      {"reason", site.winner->reason}};
  }
  for (const log::TrialReport& trial : site.trials) json["trials"].push_back(to_json(trial));
  for (const log::PassesReport& passes : site.passes) json["passes"].push_back(to_json(passes));
  return json;
}

Json to_json(const log::ConfirmReport& confirm) {
  return {{"verdict", confirm.verdict},
          {"site", confirm.site.empty() ? Json() : Json(confirm.site)},
          {"before_seconds", number(confirm.before_seconds)},
          {"after_seconds", number(confirm.after_seconds)},
          {"gain", number(confirm.gain)},
          {"bound", number(confirm.bound)},
          {"pairs", confirm.pairs},
          {"tries", confirm.tries}};
}

Json to_json(const log::LeftOutReport& left_out) {
  return {{"site", left_out.site},
          {"key", left_out.key},
          {"verdict", left_out.verdict},
          {"before_seconds", number(left_out.before_seconds)},
          {"after_seconds", number(left_out.after_seconds)},
          {"gain", number(left_out.gain)},
          {"bound", number(left_out.bound)},
          {"pairs", left_out.pairs}};
}

Json to_json(const log::ReplayReport& replay) {
  return {{"visit", replay.visit},
          {"operations", replay.operations},
          {"replays", replay.replays},
          {"seconds", number(replay.seconds)},
          {"footprint_bytes", replay.footprint_bytes},
          {"dirty_bytes", replay.dirty_bytes},
          {"device_bytes", replay.device_bytes},
          {"host_bytes", replay.host_bytes},
          {"save_seconds", number(replay.save_seconds)},
          {"restore_seconds", number(replay.restore_seconds)},
          {"hash_seconds", number(replay.hash_seconds)},
          {"timed_after", replay.timed_after.empty() ? Json() : Json(replay.timed_after)},
          {"why_restored", replay.why_restored.empty() ? Json() : Json(replay.why_restored)}};
}

Json to_json(const log::SubmissionReport& submission) {
  return {{"launches", submission.launches},
          {"state", submission.state},
          {"run", submission.run > 0 ? Json(submission.run) : Json(nullptr)},
          {"most_runs", submission.most_runs},
          {"chained", submission.chained},
          {"held", submission.held},
          {"batches", submission.batches},
          {"late", submission.late},
          {"graph_launches", submission.graph_launches},
          {"in_graphs", submission.in_graphs},
          {"graphs", submission.graphs},
          {"chained_graphs", submission.chained_graphs},
          {"chained_graph_launches", submission.chained_graph_launches},
          {"chained_edges", submission.chained_edges},
          {"images", submission.images},
          {"kernels", submission.kernels},
          {"images_left", submission.images_left},
          {"images_unneeded", submission.images_unneeded},
          {"kept_bytes", submission.kept_bytes},
          {"load_seconds", number(submission.load_seconds)},
          {"graph_bytes", submission.graph_bytes},
          {"ordinary", submission.ordinary},
          {"screened", submission.screened},
          {"why", submission.why}};
}

Json to_json(const log::KernelReport& kernel) {
  return {{"name", kernel.name},
          {"key", kernel.key},
          {"launches", kernel.launches},
          {"seconds", number(kernel.seconds)},
          {"grid", kernel.grid},
          {"block", kernel.block},
          {"shared_bytes", kernel.shared_bytes},
          {"registers", kernel.registers},
          {"params", kernel.params},
          {"timer", kernel.timer}};
}

Json to_json(const IterationTable& table) {
  if (table.is_too_large) return nullptr;
  Json json = {{"sites", table.sites}, {"rows", Json::array()}};
  for (const auto& row : table.rows) {
    json["rows"].push_back({{"pass", row.pass}, {"cells", row.cells}});
  }
  return json;
}

Json to_json(const RegionModes& modes, const log::RegionReport& region) {
  const RegionMode mode = modes.of(region);
  Json json = {{"name", region.name},
               {"found", region.found.empty() ? Json(nullptr) : Json(region.found)},
               {"submission", region.submission ? to_json(*region.submission) : Json(nullptr)},
               {"mode", mode.word.empty() ? Json(nullptr) : Json(mode.word)},
               {"why_live", mode.why != nullptr ? Json(mode.why->reason) : Json(nullptr)},
               {"stage", region.stage},
               {"passes", region.passes},
               {"entries", region.entries > 0 ? Json(region.entries) : Json(nullptr)},
               {"tuning_seconds", number(region.tuning_seconds)},
               {"replays", Json::array()},
               {"confirms", Json::array()},
               {"stored_confirm", nullptr},
               {"left_out", Json::array()},
               {"sites", Json::array()},
               {"kernels", Json::array()},
               {"periods", region.periods},
               {"ranges", region.ranges.empty() ? Json(nullptr) : Json(region.ranges)},
               {"table", to_json(iteration_table(region))}};
  for (const auto& replay : region.replays) json["replays"].push_back(to_json(replay));
  for (const auto& confirm : region.confirms) json["confirms"].push_back(to_json(confirm));
  if (region.stored_confirm) json["stored_confirm"] = to_json(*region.stored_confirm);
  for (const auto& left_out : region.left_out) json["left_out"].push_back(to_json(left_out));
  for (const auto& site : region.sites) json["sites"].push_back(to_json(site));
  for (const auto& kernel : region.kernels) json["kernels"].push_back(to_json(kernel));
  return json;
}

Json to_json(const log::SyncReport& sync) {
  return {{"region", sync.region},
          {"group", sync.group},
          {"group_rank", sync.group_rank},
          {"question", sync.question},
          {"hash", sync.hash.empty() ? Json(nullptr) : Json(sync.hash)},
          {"wait_seconds", number(sync.wait_seconds)},
          {"verdict", sync.verdict},
          {"text", sync.text.empty() ? Json(nullptr) : Json(sync.text)}};
}

Json to_json(const TimesOfRanks& times) {
  Json json = {{"seconds", Json::object()},
               {"fastest_rank", times.fastest < 0 ? Json(nullptr) : Json(times.fastest)},
               {"slowest_rank", times.slowest < 0 ? Json(nullptr) : Json(times.slowest)},
               {"spread", number(times.spread)}};
  for (const auto& [rank, seconds] : times.seconds)
    json["seconds"][std::to_string(rank)] = number(seconds);
  return json;
}

Json to_json(const SiteOfRanks& site) {
  return {{"name", site.name},
          {"key", site.key},
          {"default_config", site.default_config},
          {"config", site.config},
          {"winner_config", site.winner_config},
          {"reason", site.reason},
          {"defaults", to_json(site.defaults)},
          {"winners", to_json(site.winners)},
          {"other_ranks", site.other_ranks}};
}

Json to_json(const RegionOfRanks& region) {
  Json json = {{"name", region.name},
               {"batches", region.batches},
               {"same_batches", region.same_batches},
               {"defaults", to_json(region.defaults)},
               {"winners", to_json(region.winners)},
               {"sites", Json::array()}};
  for (const auto& site : region.sites) json["sites"].push_back(to_json(site));
  return json;
}

Json to_json(const RankComparison& comparison) {
  Json json = {{"runs", comparison.runs},
               {"ranks", Json::array()},
               {"simulated", comparison.simulated},
               {"together", comparison.together},
               {"regions", Json::array()},
               {"waits", Json::object()},
               {"differences", comparison.differences}};
  for (const auto& [rank, process] : comparison.ranks) json["ranks"].push_back(rank);
  for (const auto& region : comparison.regions) json["regions"].push_back(to_json(region));
  for (const auto& [rank, wait] : comparison.waits) {
    json["waits"][std::to_string(rank)] = {{"committed", wait.committed},
                                           {"aborted", wait.aborted},
                                           {"seconds", wait.seconds},
                                           {"longest_seconds", wait.longest_seconds}};
  }
  return json;
}

Json to_json(const log::ProcessReport& process) {
  Json json = {{"run", process.run},
               {"rank", process.rank},
               {"pid", process.pid},
               {"first_time", process.first_time},
               {"last_time", process.last_time},
               {"version", process.version},
               {"program", process.program},
               {"gpu", process.gpu},
               {"compute_capability", process.compute_capability},
               {"num_sms", process.num_sms},
               {"world_size", process.world_size},
               {"driver", process.driver},
               {"simulated", process.simulated},
               {"mode", process.mode},
               {"asked_regions", process.asked_regions},
               {"timer", process.timer},
               {"launches_outside", nullptr},
               {"regions", Json::array()},
               {"syncs", Json::array()},
               {"fallbacks", Json::array()},
               {"faults", process.faults}};
  if (process.launches_outside) json["launches_outside"] = *process.launches_outside;
  const RegionModes modes(process);
  for (const auto& region : process.regions) json["regions"].push_back(to_json(modes, region));
  for (const auto& sync : process.syncs) json["syncs"].push_back(to_json(sync));
  for (const auto& fallback : process.fallbacks) {
    json["fallbacks"].push_back({{"reason", fallback.reason},
                                 {"region", fallback.region},
                                 {"site", fallback.site},
                                 {"text", fallback.text},
                                 {"count", fallback.count}});
  }
  return json;
}

}  // namespace

std::string to_json(const LogContents& contents) {
  Json json = {{"schema", 1},
               {"folder", contents.folder},
               {"processes", Json::array()},
               {"comparisons", Json::array()},
               {"other_runs", contents.other_runs},
               {"num_lines", contents.num_records},
               {"num_bad_lines", contents.num_bad_lines},
               {"bad_lines", Json::array()}};
  for (const auto& process : contents.processes) json["processes"].push_back(to_json(process));
  for (const auto& comparison : compare_ranks(contents.processes))
    json["comparisons"].push_back(to_json(comparison));
  for (const auto& bad : contents.bad_lines) {
    json["bad_lines"].push_back({{"file", bad.file}, {"line", bad.line}, {"reason", bad.reason}});
  }
  // A log may hold bytes that are not UTF-8, which JSON may not, and characters that a terminal
  // takes for commands: all but ASCII is escaped.
  return json.dump(2, ' ', true, Json::error_handler_t::replace);
}

}  // namespace contextune::cli
