#include "cli/trace/agreement_trace.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cli/trace/track_row.hpp"

namespace contextune::cli {
namespace {

// From the edge of a slice to an arrow.
constexpr TraceTime inside = 100;

/// A question as one rank asked it.
struct Asked {
  const log::SyncReport* sync = nullptr;
  ProcessTrace* process = nullptr;
  TraceTrack track;
  TraceTime begin = 0;
  TraceTime duration = 0;
};

using Run = std::string;
using Question = std::tuple<Run, std::string, std::uint64_t>;  // by group and number
using Questions = std::map<Question, std::vector<Asked>>;

/// The question of the rank that is first in the group.
const Asked& first_of(const std::vector<Asked>& asked) {
  return *std::ranges::min_element(asked, {},
                                   [](const Asked& one) { return one.sync->group_rank; });
}

std::string title(const log::SyncReport& sync) {
  return "question " + std::to_string(sync.question) + ": " + sync.verdict.substr(0, 40);
}

TraceArguments arguments_of(const log::SyncReport& sync) {
  TraceArguments arguments;
  if (!sync.region.empty()) arguments.add("region", sync.region);
  arguments.add("group", sync.group).add("group_rank", sync.group_rank);
  arguments.add("question", sync.question).add("verdict", sync.verdict);
  if (!sync.hash.empty()) arguments.add("hash", sync.hash);
  if (std::isfinite(sync.wait_seconds)) arguments.add("wait_microseconds", sync.wait_seconds * 1e6);
  if (!sync.text.empty()) arguments.add("text", sync.text);
  return arguments;
}

void write_questions(TraceEvents& events, ProcessTrace& process, Questions& questions) {
  std::map<std::string, std::vector<Asked>> groups;
  for (const log::SyncReport& sync : process.process().syncs) {
    TraceTime duration = std::max(trace_duration(sync.wait_seconds), least_pointed_at);
    const TraceTime begin = process.clock()(sync.asked_at);
    groups[sync.group].push_back({&sync, &process, {}, begin, duration});
  }
  for (auto& [group, asked] : groups) {
    const TraceTrack track =
        process.add_track(groups.size() > 1 ? "agreements of group " + group : "agreements");
    std::ranges::stable_sort(asked, {}, &Asked::begin);
    TrackRow row;
    for (Asked& one : asked) {
      one.track = track;
      one.begin = row.place(one.begin, one.duration);
      events.slice(track, title(*one.sync), "agreement", one.begin, one.duration,
                   arguments_of(*one.sync));
      questions[{process.process().run, group, one.sync->question}].push_back(one);
    }
  }
}

void write_verdict(TraceEvents& events, const std::vector<Asked>& asked, TraceTrack track,
                   TrackRow& row) {
  const Asked& first = first_of(asked);
  // All have spoken, whatever their clocks say.
  const TraceTime last_asked = std::ranges::max_element(asked, {}, &Asked::begin)->begin;
  TraceTime duration = std::max(first.begin + first.duration - last_asked, least_pointed_at);
  const TraceTime begin = row.place(last_asked, duration);
  TraceArguments arguments;
  arguments.add("group", first.sync->group).add("question", first.sync->question);
  arguments.add("verdict", first.sync->verdict).add("ranks", std::uint64_t{asked.size()});
  const std::string name = title(*first.sync);
  events.slice(track, name, "verdict", begin, duration, arguments);
  for (const Asked& one : asked) {
    // Past the end of all times there is no room for both ends.
    if (std::min(one.duration, duration) < least_pointed_at) continue;
    events.flow(name, one.track, one.begin + inside, track, begin + inside);
  }
}

}  // namespace

void write_agreements(TraceEvents& events, std::span<ProcessTrace> processes) {
  Questions questions;
  for (ProcessTrace& process : processes) write_questions(events, process, questions);
  struct Verdicts {
    TraceTrack track;
    TrackRow row;
  };
  std::map<std::tuple<Run, std::string, std::uint32_t>, Verdicts> tracks;
  for (const auto& [question, asked] : questions) {
    const auto& [run, group, number] = question;
    const Asked& first = first_of(asked);
    const auto [verdicts, fresh] =
        tracks.try_emplace({run, group, first.track.process}, Verdicts{});
    if (fresh) verdicts->second.track = first.process->add_track("verdicts of group " + group);
    write_verdict(events, asked, verdicts->second.track, verdicts->second.row);
  }
}

}  // namespace contextune::cli
