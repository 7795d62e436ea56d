#include "cli/trace/process_trace.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "cli/report/summary.hpp"
#include "cli/trace/track_row.hpp"
#include "cli/words/text.hpp"
#include "log/line_time.hpp"

namespace contextune::cli {
namespace {

constexpr double nanoseconds = 1e9;
constexpr double microseconds = 1e6;

std::string short_name(const std::string& text) {
  return shortened(text, longest_trace_name);
}

TraceTime whole_nanoseconds(double seconds) noexcept {
  if (!(seconds > 0)) return 0;  // nor what is not a number
  const double limit = static_cast<double>(trace_end) / nanoseconds;
  return static_cast<TraceTime>(std::llround(std::min(seconds, limit) * nanoseconds));
}

std::string process_name(const log::ProcessReport& process) {
  std::string name = "rank " + std::to_string(process.rank);
  if (process.simulated) name += " (simulated)";
  name += ", process " + std::to_string(process.pid);
  if (!process.host.empty()) name += " on " + process.host;
  if (!process.program.empty()) name += ": " + process.program;
  return name;
}

double end_of(const log::ProcessReport& process) {
  const auto last = log::parse_time(process.last_time);
  return last ? static_cast<double>(last->time_since_epoch().count()) / microseconds
              : log::not_known;
}

TraceArguments arguments_of(const log::TrialReport& trial) {
  TraceArguments arguments;
  arguments.add("config", std::uint64_t{trial.config});
  arguments.add("pass", trial.pass);
  if (trial.agreed) arguments.add("agreed", true);
  if (trial.iteration < 0) {
    arguments.add("warmup", -trial.iteration);
  } else {
    arguments.add("iteration", trial.iteration);
  }
  arguments.add("status", trial.status.empty() ? "measured" : std::string_view(trial.status));
  arguments.add("launches", trial.launches);
  if (std::isfinite(trial.seconds)) arguments.add("microseconds", trial.seconds * microseconds);
  if (std::isfinite(trial.region_seconds))
    arguments.add("region_microseconds", trial.region_seconds * microseconds);
  if (std::isfinite(trial.sm_clock_hz)) arguments.add("sm_mhz", trial.sm_clock_hz * 1e-6);
  if (!trial.timer.empty()) arguments.add("timer", trial.timer);
  if (!trial.has_begin) arguments.add("placed", "where its line was written");
  return arguments;
}

/// Stages that were reported twice in a row count once.
std::vector<const log::StageReport*> stages_of(const log::RegionReport& region,
                                               const std::string& site) {
  std::vector<const log::StageReport*> stages;
  for (const log::StageReport& stage : region.stages) {
    if (stage.site != site) continue;
    if (!stages.empty() && stages.back()->stage == stage.stage &&
        stages.back()->generation == stage.generation)
      continue;
    stages.push_back(&stage);
  }
  return stages;
}

}  // namespace

TraceTime TraceClock::operator()(double at) const noexcept {
  // Logs have whole microseconds, seconds since 1970 as a number do not.
  return whole_nanoseconds(std::round((at - ahead - begin) * microseconds) / microseconds);
}

TraceTime trace_duration(double seconds) noexcept {
  return whole_nanoseconds(seconds);
}

ProcessTrace::ProcessTrace(TraceEvents& events, const log::ProcessReport& process,
                           std::uint32_t number, TraceClock clock, std::uint32_t& tracks)
    : events_(events), process_(process), number_(number), clock_(clock), tracks_(tracks) {}

TraceTrack ProcessTrace::add_track(std::string_view name) {
  const TraceTrack track{number_, ++tracks_};
  events_.name_track(track, short_name(std::string(name)));
  return track;
}

void ProcessTrace::write() {
  events_.name_process(number_, short_name(process_name(process_)), number_);
  for (const log::RegionReport& region : process_.regions) write_region(region);
  write_fallbacks();
  write_faults();
}

void ProcessTrace::write_region(const log::RegionReport& region) {
  write_stages(region);
  write_blocks(region);
  write_replays(region);
  write_region_times(region);
  const std::vector<std::string> labels = site_labels(region, longest_trace_name / 2);
  for (std::size_t i = 0; i < region.sites.size(); ++i) {
    const TraceTrack track =
        add_track(shortened(region.name, longest_trace_name / 2) + ": " + labels[i]);
    sites_.emplace(std::pair(region.name, region.sites[i].name), track);
    write_site(region.sites[i], track);
  }
}

void ProcessTrace::write_stages(const log::RegionReport& region) {
  std::set<std::string> tunings = {""};
  for (const log::StageReport& stage : region.stages) tunings.insert(stage.site);
  for (const std::string& site : tunings) {
    const std::string name = "region " + shortened(region.name, longest_trace_name / 2);
    const TraceTrack track = add_track(site.empty() ? name : name + ": tuning of " + site);
    if (site.empty()) regions_.emplace(region.name, track);
    TrackRow row;
    const std::vector<const log::StageReport*> stages = stages_of(region, site);
    for (std::size_t i = 0; i < stages.size(); ++i) {
      const TraceTime begin = clock_(stages[i]->at);
      const double end = i + 1 < stages.size() ? stages[i + 1]->at : end_of(process_);
      TraceArguments arguments;
      arguments.add("generation", stages[i]->generation);
      if (stages[i]->stage == "finished") {
        events_.instant(track, "finished", "stage", begin, arguments);
        continue;
      }
      TraceTime duration = clock_(end) - begin;
      const TraceTime placed = row.place(begin, duration);
      events_.slice(track, short_name(stages[i]->stage), "stage", placed, duration, arguments);
    }
    if (site.empty()) write_confirms(region, track);
  }
}

void ProcessTrace::write_confirms(const log::RegionReport& region, TraceTrack track) {
  for (const log::ConfirmReport& confirm : region.confirms) {
    TraceArguments arguments;
    if (!confirm.site.empty()) arguments.add("site", confirm.site);
    if (std::isfinite(confirm.before_seconds)) {
      arguments.add("before_microseconds", confirm.before_seconds * microseconds);
      arguments.add("after_microseconds", confirm.after_seconds * microseconds);
      arguments.add("gain", confirm.gain).add("bound", confirm.bound);
    }
    arguments.add("pairs", confirm.pairs).add("tries", confirm.tries);
    events_.instant(track, short_name("confirm: " + confirm.verdict), "verdict", clock_(confirm.at),
                    arguments);
  }
}

void ProcessTrace::write_blocks(const log::RegionReport& region) {
  if (region.blocks.empty()) return;
  const std::string name = "region " + shortened(region.name, longest_trace_name / 2);
  const TraceTrack track = add_track(name + ": how launches went out");
  TrackRow row;
  for (const log::BlockReport& block : region.blocks) {
    TraceArguments arguments;
    arguments.add("block", block.number).add("entries", block.entries);
    if (block.entries > 0)
      arguments.add("microseconds_of_an_entry",
                    block.seconds * microseconds / static_cast<double>(block.entries));
    TraceTime duration = trace_duration(block.seconds);
    const TraceTime begin = row.place(clock_(block.at) - duration, duration);
    events_.slice(track, short_name(block.launches), "block", begin, duration, arguments);
  }
}

void ProcessTrace::write_replays(const log::RegionReport& region) {
  if (region.replays.empty()) return;
  const TraceTrack track =
      add_track("region " + shortened(region.name, longest_trace_name / 2) + ": replayed visits");
  TrackRow row;
  for (const log::ReplayReport& replay : region.replays) {
    TraceArguments arguments;
    arguments.add("visit", replay.visit).add("replays_until_then", replay.replays);
    arguments.add("operations", replay.operations);
    arguments.add("footprint_bytes", replay.footprint_bytes);
    arguments.add("dirty_bytes", replay.dirty_bytes);
    TraceTime duration = trace_duration(replay.seconds);
    const TraceTime begin = row.place(clock_(replay.at) - duration, duration);
    events_.slice(track, "replay of visit " + std::to_string(replay.visit), "replay", begin,
                  duration, arguments);
  }
}

void ProcessTrace::write_region_times(const log::RegionReport& region) {
  const std::string name = short_name("time of a pass of " + region.name);
  const auto add = [&](double at, double seconds) {
    if (std::isfinite(seconds))
      events_.counter(number_, name, clock_(at), "microseconds", seconds * microseconds);
  };
  std::set<std::pair<bool, std::uint64_t>> told;
  for (const log::SiteReport& site : region.sites)
    for (const log::TrialReport& trial : site.trials)
      if (std::isfinite(trial.region_seconds) && told.emplace(trial.agreed, trial.pass).second)
        add(trial.at, trial.region_seconds);
  for (const log::ConfirmReport& confirm : region.confirms) {
    if (!confirm.site.empty()) continue;
    double begin = confirm.at;
    for (const log::StageReport& stage : region.stages)
      if (stage.stage == "confirm" && stage.at <= confirm.at) begin = stage.at;
    add(begin, confirm.before_seconds);
    add(confirm.at, confirm.after_seconds);
  }
}

void ProcessTrace::write_site(const log::SiteReport& site, TraceTrack track) {
  std::vector<std::pair<TraceTime, const log::TrialReport*>> trials;
  trials.reserve(site.trials.size());
  for (const log::TrialReport& trial : site.trials) trials.emplace_back(clock_(trial.at), &trial);
  std::ranges::stable_sort(trials, {}, [](const auto& one) { return one.first; });
  std::map<std::uint32_t, std::string> names;
  TrackRow row;
  for (const auto& [at, trial] : trials) {
    auto [name, fresh] = names.emplace(trial->config, std::string());
    if (fresh) name->second = short_name(config_text(site, trial->config));
    TraceTime duration = trace_duration(
        trial->seconds * static_cast<double>(std::max<std::uint64_t>(trial->launches, 1)));
    // A line is written when all is over.
    const TraceTime begin = row.place(trial->has_begin ? at : at - duration, duration);
    events_.slice(track, name->second, trial->iteration < 0 ? "trial,warmup" : "trial", begin,
                  duration, arguments_of(*trial));
  }
  if (!site.winner) return;
  TraceArguments arguments;
  arguments.add("config", std::uint64_t{site.winner->config}).add("reason", site.winner->reason);
  if (std::isfinite(site.winner->seconds))
    arguments.add("microseconds", site.winner->seconds * microseconds);
  if (std::isfinite(site.winner->default_seconds))
    arguments.add("default_microseconds", site.winner->default_seconds * microseconds);
  events_.instant(track, "winner: " + short_name(config_text(site, site.winner->config)), "winner",
                  clock_(site.winner->at), arguments);
}

TraceTrack ProcessTrace::events_track() {
  if (own_track_.track == 0) own_track_ = add_track("events of no region");
  return own_track_;
}

TraceTrack ProcessTrace::track_of(const log::FallbackReport& fallback) {
  if (const auto site = sites_.find({fallback.region, fallback.site}); site != sites_.end())
    return site->second;
  if (const auto region = regions_.find(fallback.region); region != regions_.end())
    return region->second;
  return events_track();
}

void ProcessTrace::write_fallbacks() {
  for (const log::FallbackReport& fallback : process_.fallbacks) {
    TraceArguments arguments;
    if (!fallback.region.empty()) arguments.add("region", short_name(fallback.region));
    if (!fallback.site.empty()) arguments.add("site", short_name(fallback.site));
    arguments.add("text", fallback.text).add("count", fallback.count);
    events_.instant(track_of(fallback), short_name("fallback: " + fallback.reason), "fallback",
                    clock_(fallback.at), arguments);
  }
}

void ProcessTrace::write_faults() {
  for (std::size_t i = 0; i < process_.faults.size(); ++i)
    events_.instant(events_track(), short_name("fault: " + process_.faults[i]), "fault",
                    clock_(process_.fault_times[i]),
                    TraceArguments().add("text", process_.faults[i]));
}

}  // namespace contextune::cli
