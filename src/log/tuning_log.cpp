#include "log/tuning_log.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>
#include <variant>

#include "log/events.hpp"
#include "log/line_time.hpp"
#include "log/logfmt.hpp"

namespace contextune::log {
namespace {

constexpr double microseconds = 1e6;

// Trials of a pass are reported when its times have come, and those of ranks when they have agreed.
constexpr std::size_t most_known_passes = 4096;

double clocks_apart() {
  using Seconds = std::chrono::duration<double>;
  return Seconds(std::chrono::system_clock::now().time_since_epoch()).count() -
         Seconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A text value without the quotes that tell it from a number in "name=value name=value".
std::string value_text(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return contextune::to_string(value);
}

// "0.0435 0.0421": more digits than a measurement has would only fill the log.
std::string gains_text(const std::vector<double>& gains) {
  std::string text;
  for (const double gain : gains) {
    std::array<char, 32> buffer{};
    const int size = std::snprintf(buffer.data(), buffer.size(), "%.4g", gain);
    text.append(text.empty() ? "" : " ").append(buffer.data(), static_cast<std::size_t>(size));
    if (text.size() > max_value_bytes - buffer.size()) break;
  }
  return text;
}

void append_time(std::vector<Field>& fields, std::string_view name, double seconds) {
  if (std::isfinite(seconds)) fields.emplace_back(name, seconds * microseconds);
}

}  // namespace

TuningLog::TuningLog(RankLog& log, std::string region, std::string timer, bool simulated)
    : log_(log),
      region_(std::move(region)),
      timer_(std::move(timer)),
      simulated_(simulated),
      clocks_apart_(clocks_apart()) {}

void TuningLog::add_site(SiteIndex index, const SiteSpec& spec, const SiteFacts& facts) {
  if (index == no_site) return;
  if (sites_.size() <= index) sites_.resize(index + 1);
  Site& site = sites_[index];
  site.name = spec.name;
  site.key = spec.key.to_string();
  site.configs.clear();
  for (const Config& config : spec.configs) {
    std::vector<Parameter>& parameters = site.configs.emplace_back();
    for (const auto& [name, value] : config.entries()) {
      parameters.push_back({parameter_field_name(name), value_text(value)});
    }
  }
  std::vector<Field> fields = {{"region", region_}};
  append_site(fields, index);
  const std::string grid = extent_text(facts.grid);
  const std::string block = extent_text(facts.block);
  fields.emplace_back("configs", spec.configs.size());
  fields.emplace_back("launches", facts.launches);
  fields.emplace_back("grid", grid);
  fields.emplace_back("block", block);
  fields.emplace_back("shared_bytes", facts.shared_bytes);
  fields.emplace_back("registers", facts.registers);
  fields.emplace_back("provider", facts.provider);
  if (facts.pruned.all() > 0) {
    fields.emplace_back("pruned_by_device", facts.pruned.by_device);
    fields.emplace_back("pruned_by_kernel", facts.pruned.by_kernel);
    fields.emplace_back("pruned_by_author", facts.pruned.by_author);
    fields.emplace_back("pruned_failed", facts.pruned.failed);
  }
  if (facts.table_passes > 0) fields.emplace_back("table_passes", facts.table_passes);
  if (!facts.default_choice.empty()) fields.emplace_back("default", facts.default_choice);
  log_.write(LogLevel::Info, "site", fields);
  // A site with nothing to find out was settled before it had its name.
  for (const WinnerEvent& event : std::exchange(unnamed_, {})) winner(event);
}

void TuningLog::stage(Stage stage, std::uint32_t generation) {
  if (stage != Stage::Table) end_runs();
  const auto now = std::chrono::steady_clock::now();
  if (!first_stage_) first_stage_ = now;
  clocks_apart_ = clocks_apart();  // the system's clock may have been set
  const std::chrono::duration<double, std::micro> elapsed = now - *first_stage_;
  std::vector<Field> fields = {{"region", region_}};
  if (is_site_alone_ && !sites_.empty()) fields.emplace_back("site", sites_.front().name);
  fields.emplace_back("stage", contextune::to_string(stage));
  fields.emplace_back("generation", generation);
  fields.emplace_back("elapsed_us", elapsed.count());
  const std::string began = text_of_past(0);
  fields.emplace_back("began", began);
  log_.write(LogLevel::Info, "stage", fields);
}

void TuningLog::ran(const TableRow& row, std::span<const SiteRun> runs) {
  if (passes_.size() == most_known_passes) passes_.pop_front();
  passes_.push_back({row});
  for (const SiteRun& run : runs) {
    if (run.site >= sites_.size()) continue;
    std::optional<Stretch>& stretch = sites_[run.site].stretch;
    const bool goes_on = stretch && stretch->config == run.config &&
                         stretch->first.agreed == row.agreed && stretch->last + 1 == row.pass &&
                         row.pass - stretch->first.pass < most_passes_of_a_line;
    if (!goes_on) {
      write_stretch(run.site);
      stretch = Stretch{row, row.pass, run.config};
    }
    stretch->last = row.pass;
  }
}

void TuningLog::took(const TableRow& row, double region_seconds) {
  if (Pass* const pass = find_pass(row.pass, row.agreed)) pass->region_seconds = region_seconds;
}

TuningLog::Pass* TuningLog::find_pass(std::uint64_t pass, bool agreed) {
  const auto found = std::find_if(passes_.rbegin(), passes_.rend(), [&](const Pass& one) {
    return one.row.pass == pass && one.row.agreed == agreed;
  });
  return found == passes_.rend() ? nullptr : &*found;
}

void TuningLog::end_runs() {
  for (SiteIndex index = 0; index < sites_.size(); ++index) write_stretch(index);
}

void TuningLog::write_stretch(SiteIndex index) {
  const auto stretch = std::exchange(sites_[index].stretch, std::nullopt);
  if (!stretch || !log_.wants(LogLevel::Info)) return;
  std::vector<Field> fields = {{"region", region_}};
  fields.emplace_back("pass", stretch->first.pass);
  fields.emplace_back("last_pass", stretch->last);
  append_site(fields, index);
  if (stretch->config) {
    append_config(fields, index, *stretch->config);
  } else {
    fields.emplace_back("status", "mixed");
  }
  if (stretch->first.agreed) fields.emplace_back("agreed", true);
  append_simulated(fields);
  log_.write(LogLevel::Info, "passes", fields);
}

void TuningLog::trial(const TrialEvent& event) {
  if (!log_.wants(LogLevel::Info)) return;
  std::vector<Field> fields;
  fields.reserve(16);
  fields.emplace_back("region", region_);
  fields.emplace_back("pass", event.pass);
  append_site(fields, event.site);
  append_config(fields, event.site, event.config);
  if (event.iteration < 0) {
    fields.emplace_back("warmup", -event.iteration);
  } else {
    fields.emplace_back("iter", event.iteration);
  }
  fields.emplace_back("launches", event.launches);
  append_time(fields, "time_us", event.seconds);
  const Pass* const pass = find_pass(event.pass, event.agreed);
  const bool has_region_time = pass != nullptr && pass->region_seconds > 0;
  if (has_region_time) append_time(fields, "region_us", pass->region_seconds);
  fields.emplace_back("timer", timer_);
  if (event.sm_clock_hz > 0) fields.emplace_back("sm_mhz", std::lround(event.sm_clock_hz / 1e6));
  if (event.throttled) {
    fields.emplace_back("status", "throttled");
  } else if (event.status != TrialStatus::Measured) {
    fields.emplace_back("status", contextune::to_string(event.status));
  }
  if (event.agreed) fields.emplace_back("agreed", true);
  const bool has_begun = pass != nullptr && pass->row.began > 0;
  const std::string began =
      has_begun ? microseconds_text(pass->row.began + clocks_apart_) : std::string();
  if (has_begun) fields.emplace_back("began", began);
  append_simulated(fields);
  log_.write(LogLevel::Info, "trial", fields);
}

void TuningLog::winner(const WinnerEvent& event) {
  if (event.site >= sites_.size()) {
    unnamed_.push_back(event);
    return;
  }
  std::vector<Field> fields = {{"region", region_}};
  append_site(fields, event.site);
  append_config(fields, event.site, event.config);
  append_time(fields, "time_us", event.seconds);
  append_time(fields, "default_us", event.default_seconds);
  fields.emplace_back("reason", contextune::to_string(event.reason));
  // Where it was never tried, as with a pin, no other line says what it is.
  const std::string by_default = event.config == 0 ? "" : parameters_text(event.site, 0);
  if (!by_default.empty()) fields.emplace_back("default_config", by_default);
  append_simulated(fields);
  log_.write(LogLevel::Info, "winner", fields);
}

void TuningLog::confirm(const ConfirmEvent& event) {
  std::vector<Field> fields = {{"region", region_}};
  if (is_site_alone_ && !sites_.empty()) fields.emplace_back("site", sites_.front().name);
  fields.emplace_back("verdict", contextune::to_string(event.verdict));
  if (event.pairs > 0) {
    append_time(fields, "before_us", event.before_seconds);
    append_time(fields, "after_us", event.after_seconds);
    fields.emplace_back("gain", event.gain);
    fields.emplace_back("bound", event.bound);
  }
  fields.emplace_back("pairs", event.pairs);
  fields.emplace_back("tries", event.tries);
  const std::string gains = gains_text(event.gains);
  if (!gains.empty()) fields.emplace_back("pair_gains", gains);
  append_simulated(fields);
  log_.write(LogLevel::Info, "confirm", fields);
}

void TuningLog::left_out(const LeftOutEvent& event) {
  std::vector<Field> fields = {{"region", region_}};
  const bool known = event.site < sites_.size();
  fields.emplace_back("left_out", known ? std::string_view(sites_[event.site].name) : "unnamed");
  fields.emplace_back("key", known ? std::string_view(sites_[event.site].key) : "");
  append_config(fields, event.site, event.config);
  fields.emplace_back("verdict", event.kept ? "kept" : "dropped");
  if (event.pairs > 0) {
    append_time(fields, "before_us", event.without_seconds);
    append_time(fields, "after_us", event.with_seconds);
    fields.emplace_back("gain", event.gain);
    fields.emplace_back("bound", event.bound);
  }
  fields.emplace_back("pairs", event.pairs);
  append_simulated(fields);
  log_.write(LogLevel::Info, "confirm", fields);
}

void TuningLog::sync(const SyncEvent& event) {
  write_sync(log_, region_, event);
}

void TuningLog::fallback(FallbackReason reason, SiteIndex site, const std::string& text) {
  const bool known = site < sites_.size();
  write_fallback(log_, reason, region_, known ? sites_[site].name : std::string_view(), text);
}

void TuningLog::append_site(std::vector<Field>& fields, SiteIndex index) const {
  const bool known = index < sites_.size();
  fields.emplace_back("site", known ? std::string_view(sites_[index].name) : "unnamed");
  fields.emplace_back("key", known ? std::string_view(sites_[index].key) : "");
}

void TuningLog::append_config(std::vector<Field>& fields, SiteIndex index,
                              std::uint32_t config) const {
  fields.emplace_back("config", config);
  if (index >= sites_.size() || config >= sites_[index].configs.size()) return;
  for (const Parameter& parameter : sites_[index].configs[config]) {
    fields.emplace_back(parameter.field_name, parameter.value);
  }
}

std::string TuningLog::parameters_text(SiteIndex index, std::uint32_t config) const {
  std::string text;
  if (config >= sites_[index].configs.size()) return text;
  for (const Parameter& parameter : sites_[index].configs[config])
    append_field(text, parameter_of_field(parameter.field_name), parameter.value);
  return text;
}

void TuningLog::append_simulated(std::vector<Field>& fields) const {
  if (simulated_) fields.emplace_back("simulated", true);
}

}  // namespace contextune::log
