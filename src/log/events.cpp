#include "log/events.hpp"

#include <contextune/version.hpp>
#include <vector>

#include "core/value/hexadecimal.hpp"
#include "core/value/option_table.hpp"
#include "log/line_time.hpp"

namespace contextune::log {
namespace {

void write_fields(RankLog& log, std::string_view event, std::vector<Field>& fields,
                  bool simulated) {
  if (simulated) fields.emplace_back("simulated", true);
  log.write(LogLevel::Info, event, fields);
}

std::string_view word_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::Open:
      return "open";
    case Verdict::Committed:
      return "committed";
    case Verdict::Aborted:
      return "aborted";
    case Verdict::Unknown:
      return "unknown";
  }
  return "unknown";
}

}  // namespace

std::string extent_text(const std::array<std::uint32_t, 3>& extent) {
  std::string text = std::to_string(extent[0]);
  if (extent[1] != 1 || extent[2] != 1) text += "x" + std::to_string(extent[1]);
  if (extent[2] != 1) text += "x" + std::to_string(extent[2]);
  return text;
}

void write_start(RankLog& log, const StartEvent& event) noexcept try {
  std::vector<Field> fields = {{"version", CONTEXTUNE_VERSION},
                               {"program", event.program},
                               {"gpu", event.gpu},
                               {"compute_capability", event.compute_capability},
                               {"num_sms", event.num_sms},
                               {"driver", event.driver},
                               {"simulated", event.simulated},
                               {"mode", contextune::to_string(event.mode)},
                               {"regions", event.regions},
                               {"timer", event.timer},
                               {"world_size", event.world_size},
                               {"host", event.host}};
  if (!event.command.empty()) fields.emplace_back("command", event.command);
  if (!event.options.empty()) fields.emplace_back("options", event.options);
  log.write(LogLevel::Info, "start", fields);
} catch (...) {
}

void write_region(RankLog& log, std::string_view region, std::int64_t thread) noexcept {
  log.write(LogLevel::Info, "region", {{"region", region}, {"thread", thread}});
}

void write_found_region(RankLog& log, std::string_view region, std::string_view text) noexcept {
  log.write(LogLevel::Info, "region", {{"region", region}, {"text", text}});
}

void write_period(RankLog& log, std::string_view region, std::string_view text,
                  bool simulated) noexcept try {
  std::vector<Field> fields = {{"region", region}, {"text", text}};
  write_fields(log, "period", fields, simulated);
} catch (...) {
}

void write_ranges(RankLog& log, std::string_view region, std::string_view names) noexcept {
  log.write(LogLevel::Info, "ranges", {{"region", region}, {"names", names}});
}

void write_submission(RankLog& log, std::string_view region, const SubmissionEvent& event) noexcept
    try {
  std::vector<Field> fields = {{"region", region},
                               {"launches", event.launches},
                               {"state", event.state},
                               {"run", event.run},
                               {"most_runs", event.most_runs}};
  for (const auto& [name, count] : submission_counts) fields.emplace_back(name, event.*count);
  fields.emplace_back("load_us", event.load_seconds * 1e6);
  fields.emplace_back("graph_bytes", event.graph_bytes);
  if (!event.ordinary.empty()) fields.emplace_back("ordinary", event.ordinary);
  if (!event.screened.empty()) fields.emplace_back("screened", event.screened);
  if (!event.why.empty()) fields.emplace_back("why", event.why);
  write_fields(log, "submission", fields, event.simulated);
} catch (...) {
}

void write_search_step(RankLog& log, std::string_view region, const SearchStepEvent& event) noexcept
    try {
  std::vector<Field> fields = {{"region", region},
                               {"stage", event.stage},
                               {"generation", 0},
                               {"elapsed_us", event.seconds * 1e6}};
  if (event.ways > 0) fields.emplace_back("ways", event.ways);
  if (!event.launches.empty()) {
    fields.emplace_back("launches", event.launches);
    fields.emplace_back("against", event.against);
    fields.emplace_back("pairs", event.pairs);
  }
  write_fields(log, "stage", fields, event.simulated);
} catch (...) {
}

void write_block(RankLog& log, std::string_view region, std::uint64_t block,
                 std::string_view submission, double seconds, std::uint64_t entries) noexcept {
  log.write(LogLevel::Debug, "block",
            {{"region", region},
             {"block", block},
             {"launches", submission},
             {"time_us", seconds * 1e6},
             {"entries", entries}});
}

void write_ranks_of_region(RankLog& log, std::string_view region, std::string_view ranks,
                           std::string_view text) noexcept {
  log.write(LogLevel::Info, "region", {{"region", region}, {"ranks", ranks}, {"text", text}});
}

void write_fallback(RankLog& log, FallbackReason reason, std::string_view region,
                    std::string_view site, std::string_view text) noexcept try {
  const FallbackInfo& info = fallback_info(reason);
  std::vector<Field> fields = {{"reason", info.word}};
  if (!region.empty()) fields.emplace_back("region", region);
  if (!site.empty()) fields.emplace_back("site", site);
  fields.emplace_back("text", text.empty() ? info.sentence : text);
  log.write(LogLevel::Warn, "fallback", fields);
} catch (...) {
}

void write_fault(RankLog& log, std::string_view text) noexcept {
  log.write(LogLevel::Warn, "fault", {{"text", text}});
  log.flush();  // who asked for something wrong finds it said, whatever comes
}

void write_kernel(RankLog& log, const KernelEvent& event) noexcept try {
  const std::string grid = extent_text(event.grid);
  const std::string block = extent_text(event.block);
  std::vector<Field> fields = {{"region", event.region},
                               {"kernel", event.kernel},
                               {"key", event.key},
                               {"launches", event.launches},
                               {"time_s", event.seconds},
                               {"grid", grid},
                               {"block", block},
                               {"shared_bytes", event.shared_bytes},
                               {"registers", event.registers},
                               {"params", event.params},
                               {"timer", event.timer}};
  write_fields(log, "kernel", fields, event.simulated);
} catch (...) {
}

void write_replay(RankLog& log, const ReplayEvent& event) noexcept try {
  constexpr double microseconds = 1e6;
  std::vector<Field> fields = {{"region", event.region},
                               {"visit", event.visit},
                               {"operations", event.operations},
                               {"replays", event.replays},
                               {"time_s", event.seconds},
                               {"footprint_bytes", event.footprint_bytes},
                               {"dirty_bytes", event.dirty_bytes},
                               {"device_bytes", event.device_bytes},
                               {"host_bytes", event.host_bytes},
                               {"save_us", event.save_seconds * microseconds},
                               {"restore_us", event.restore_seconds * microseconds},
                               {"hash_us", event.hash_seconds * microseconds}};
  if (!event.timed_after.empty()) fields.emplace_back("timed_after", event.timed_after);
  if (!event.why_restored.empty()) fields.emplace_back("why_restored", event.why_restored);
  if (event.num_ranks > 1) {
    fields.emplace_back("ranks", event.num_ranks);
    fields.emplace_back("wait_us", event.waited_seconds * microseconds);
    fields.emplace_back("longest_wait_us", event.longest_wait_seconds * microseconds);
  }
  write_fields(log, "replay", fields, event.simulated);
} catch (...) {
}

void write_store(RankLog& log, const StoreEvent& event) noexcept try {
  std::vector<Field> fields = {
      {"region", event.region}, {"action", event.action}, {"sites", event.sites}};
  if (event.action == "found") fields.emplace_back("same_software", event.same_software);
  if (event.confirm && event.confirm->pairs > 0) {
    constexpr double microseconds = 1e6;
    fields.emplace_back("verdict", contextune::to_string(event.confirm->verdict));
    fields.emplace_back("before_us", event.confirm->before_seconds * microseconds);
    fields.emplace_back("after_us", event.confirm->after_seconds * microseconds);
    fields.emplace_back("gain", event.confirm->gain);
    fields.emplace_back("bound", event.confirm->bound);
    fields.emplace_back("pairs", event.confirm->pairs);
  }
  write_fields(log, "store", fields, event.simulated);
} catch (...) {
}

void write_sync(RankLog& log, std::string_view region, const SyncEvent& event) noexcept try {
  constexpr double microseconds = 1e6;
  const bool committed = event.verdict == Verdict::Committed;
  // In full, so that a reader can compare them by eye and by grep.
  const std::string group = hexadecimal(event.group);
  const std::string hash = hexadecimal(event.hash);
  std::vector<Field> fields;
  if (!region.empty()) fields.emplace_back("region", region);
  fields.emplace_back("group", group);
  fields.emplace_back("group_rank", event.group_rank);
  fields.emplace_back("question", event.question);
  if (committed) fields.emplace_back("hash", hash);
  fields.emplace_back("wait_us", event.wait_seconds * microseconds);
  if (committed) fields.emplace_back("others_us", event.others_seconds * microseconds);
  fields.emplace_back("verdict", word_of(event.verdict));
  const std::string began = text_of_past(event.wait_seconds);
  fields.emplace_back("began", began);
  if (!committed) fields.emplace_back("text", event.why);
  log.write(LogLevel::Info, "sync", fields);
} catch (...) {
}

void write_summary(RankLog& log, const SummaryEvent& event) noexcept try {
  std::vector<Field> fields = {{"region", event.region},   {"passes", event.passes},
                               {"entries", event.entries}, {"tuning_s", event.tuning_seconds},
                               {"stage", event.stage},     {"sites", event.sites},
                               {"tuned", event.tuned}};
  write_fields(log, "summary", fields, event.simulated);
} catch (...) {
}

void write_exit(RankLog& log, std::uint64_t launches_outside, bool simulated) noexcept try {
  std::vector<Field> fields = {{"launches_outside", launches_outside}};
  write_fields(log, "summary", fields, simulated);
  log.flush();
} catch (...) {
}

}  // namespace contextune::log
