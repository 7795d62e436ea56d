#include "log/run_report.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <string_view>
#include <utility>

#include "core/value/take_until.hpp"
#include "log/events.hpp"
#include "log/line_time.hpp"

namespace contextune::log {
namespace {

constexpr std::uint64_t most_configs = 1U << 24U;
constexpr std::uint64_t most_iterations = 1U << 30U;

double seconds_of(const Record& record, std::string_view name) {
  const auto value = record.number(name);
  return value.has_value() ? *value / 1e6 : not_known;  // 2.53e-06, where * gives 2.5299999e-06
}

double clock_seconds(std::string_view time) {
  const auto parsed = parse_time(time);
  return parsed ? static_cast<double>(parsed->time_since_epoch().count()) * 1e-6 : not_known;
}

/// When it began; where the log does not say so, when its line was written.
double begin_of(const Record& record) {
  const double began = clock_seconds(record.text("began"));
  return std::isnan(began) ? clock_seconds(record.time) : began;
}

std::string missing(std::string_view event, std::string_view field) {
  return "event=" + std::string(event) + " without a usable " + std::string(field);
}

std::string parameters_of(const Record& record) {
  std::string text;
  for (const ParsedField& field : record.fields) {
    if (is_reserved_field(field.name)) continue;
    append_field(text, parameter_of_field(field.name), field.value);
  }
  return text;
}

std::string process_key(const Record& record, int rank) {
  return record.run + ' ' + std::to_string(rank) + ' ' + std::to_string(record.pid);
}

std::string process_key(const Record& record) {
  return process_key(record, record.rank);
}

std::string joined(std::initializer_list<std::string_view> parts) {
  std::string key;
  for (const std::string_view part : parts) key.append(part).append(1, '\0');
  return key;
}

// Nothing, if one of them is no number.
std::vector<double> numbers_of(std::string_view text) {
  std::vector<double> numbers;
  while (!text.empty()) {
    const std::string_view word = take_until(text, ' ');
    double number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(number))
      return {};
    numbers.push_back(number);
  }
  return numbers;
}

ConfirmReport confirm_of(const Record& record) {
  return {std::string(record.text("verdict")),       std::string(record.text("site")),
          seconds_of(record, "before_us"),           seconds_of(record, "after_us"),
          record.number("gain").value_or(not_known), record.number("bound").value_or(not_known),
          record.count("pairs").value_or(0),         record.count("tries").value_or(0),
          numbers_of(record.text("pair_gains")),     clock_seconds(record.time)};
}

std::string fallback_key(const FallbackReport& fallback) {
  return joined({fallback.reason, fallback.region, fallback.site, fallback.text});
}

}  // namespace

std::string ReportBuilder::add(const Record& record) {
  using Handler = std::string (ReportBuilder::*)(const Record&);
  static constexpr std::array<std::pair<std::string_view, Handler>, 20> handlers = {{
      {"start", &ReportBuilder::add_start},       {"rank", &ReportBuilder::add_rank},
      {"region", &ReportBuilder::add_region},     {"site", &ReportBuilder::add_site},
      {"stage", &ReportBuilder::add_stage},       {"trial", &ReportBuilder::add_trial},
      {"passes", &ReportBuilder::add_passes},     {"winner", &ReportBuilder::add_winner},
      {"confirm", &ReportBuilder::add_confirm},   {"store", &ReportBuilder::add_store},
      {"fallback", &ReportBuilder::add_fallback}, {"fault", &ReportBuilder::add_fault},
      {"kernel", &ReportBuilder::add_kernel},     {"period", &ReportBuilder::add_period},
      {"ranges", &ReportBuilder::add_ranges},     {"replay", &ReportBuilder::add_replay},
      {"sync", &ReportBuilder::add_sync},         {"submission", &ReportBuilder::add_submission},
      {"summary", &ReportBuilder::add_summary},   {"block", &ReportBuilder::add_block},
  }};
  for (const auto& [event, handler] : handlers) {
    if (record.event == event) return (this->*handler)(record);
  }
  if (record.event == "timer") return {};
  return "event=" + record.event + " is not known to this version";
}

std::size_t ReportBuilder::place_of(const Record& record) {
  const auto [place, fresh] = process_places_.emplace(process_key(record), processes_.size());
  if (fresh) {
    ProcessReport& process = processes_.emplace_back();
    process.run = record.run;
    process.pid = record.pid;
    process.rank = record.rank;
    process.first_time = record.time;
    indexes_.emplace_back();
  }
  ProcessReport& process = processes_[place->second];
  process.last_time = record.time;
  if (record.text("simulated") == "yes") process.simulated = true;
  return place->second;
}

ProcessReport& ReportBuilder::process_of(const Record& record) {
  return processes_[place_of(record)];
}

RegionReport& ReportBuilder::region_of(const Record& record) {
  const std::size_t process = place_of(record);
  std::vector<RegionReport>& regions = processes_[process].regions;
  const auto [place, fresh] =
      indexes_[process].regions.emplace(record.text("region"), regions.size());
  if (fresh) regions.emplace_back().name = record.text("region");
  return regions[place->second];
}

SiteReport& ReportBuilder::site_of(const Record& record) {
  RegionReport& region = region_of(record);
  const auto [place, fresh] = indexes_[place_of(record)].sites.emplace(
      joined({record.text("region"), record.text("site"), record.text("key")}),
      region.sites.size());
  if (fresh) {
    SiteReport& site = region.sites.emplace_back();
    site.name = record.text("site");
    site.key = record.text("key");
  }
  return region.sites[place->second];
}

std::string ReportBuilder::add_start(const Record& record) {
  ProcessReport& process = process_of(record);
  process.started = true;
  process.version = record.text("version");
  process.program = record.text("program");
  process.host = record.text("host");
  process.gpu = record.text("gpu");
  process.compute_capability = record.text("compute_capability");
  process.num_sms = record.count("num_sms").value_or(0);
  process.driver = record.text("driver");
  process.mode = record.text("mode");
  process.asked_regions = record.text("regions");
  process.timer = record.text("timer");
  process.command = record.text("command");
  process.options = record.text("options");
  process.world_size = record.count("world_size").value_or(1);
  return {};
}

std::string ReportBuilder::add_rank(const Record& record) {
  const auto rank = record.count("becomes", std::numeric_limits<int>::max());
  if (!rank) return missing("rank", "becomes");
  const auto before = process_places_.find(process_key(record));
  if (before == process_places_.end()) return {};
  const std::size_t place = before->second;
  ProcessReport& old = processes_[place];
  const std::string key = process_key(record, static_cast<int>(*rank));
  const auto known = process_places_.find(key);
  process_places_.erase(before);
  if (known == process_places_.end()) {
    old.rank = static_cast<int>(*rank);
    process_places_.emplace(key, place);
    return {};
  }
  // Its other file was read first. No region has been entered here.
  ProcessReport& process = processes_[known->second];
  process.first_time = old.first_time;
  process.fallbacks.insert(process.fallbacks.begin(), old.fallbacks.begin(), old.fallbacks.end());
  process.faults.insert(process.faults.begin(), old.faults.begin(), old.faults.end());
  process.fault_times.insert(process.fault_times.begin(), old.fault_times.begin(),
                             old.fault_times.end());
  Places& fallbacks = indexes_[known->second].fallbacks;
  fallbacks.clear();
  for (std::size_t i = 0; i < process.fallbacks.size(); ++i)
    fallbacks.emplace(fallback_key(process.fallbacks[i]), i);
  processes_.erase(processes_.begin() + static_cast<std::ptrdiff_t>(place));
  indexes_.erase(indexes_.begin() + static_cast<std::ptrdiff_t>(place));
  for (auto& [name, index] : process_places_) index -= index > place ? 1U : 0U;
  return {};
}

std::string ReportBuilder::add_region(const Record& record) {
  if (record.find("region") == nullptr) return missing("region", "region");
  RegionReport& region = region_of(record);
  if (record.find("ranks") == nullptr && record.find("text") != nullptr)
    region.found = record.text("text");
  return {};
}

std::string ReportBuilder::add_submission(const Record& record) {
  if (record.find("region") == nullptr) return missing("submission", "region");
  SubmissionEvent& submission = region_of(record).submission.emplace();
  submission.launches = record.text("launches");
  submission.state = record.text("state");
  submission.run = static_cast<int>(record.count("run", most_iterations).value_or(0));
  submission.most_runs = static_cast<int>(record.count("most_runs", most_iterations).value_or(0));
  for (const auto& [name, count] : submission_counts)
    submission.*count = record.count(name).value_or(0);
  submission.load_seconds = seconds_of(record, "load_us");
  submission.graph_bytes = record.count("graph_bytes").value_or(0);
  submission.ordinary = record.text("ordinary");
  submission.screened = record.text("screened");
  submission.why = record.text("why");
  return {};
}

std::string ReportBuilder::add_block(const Record& record) {
  if (record.find("region") == nullptr) return missing("block", "region");
  region_of(record).blocks.push_back(
      {record.count("block").value_or(0), std::string(record.text("launches")),
       seconds_of(record, "time_us"), record.count("entries").value_or(0),
       clock_seconds(record.time)});
  return {};
}

std::string ReportBuilder::add_stage(const Record& record) {
  if (record.find("region") == nullptr) return missing("stage", "region");
  RegionReport& region = region_of(record);
  region.stage = record.text("stage");
  region.is_in_table = region.stage == "table";
  region.screened_ways = record.count("ways").value_or(0);
  region.compared = record.text("launches");
  region.compared_pairs = record.count("pairs").value_or(0);
  region.stages.push_back({region.stage, std::string(record.text("site")),
                           record.count("generation").value_or(0), record.time,
                           seconds_of(record, "elapsed_us"), begin_of(record)});
  return {};
}

std::string ReportBuilder::add_site(const Record& record) {
  if (record.find("site") == nullptr) return missing("site", "site");
  SiteReport& site = site_of(record);
  site.num_configs = record.count("configs").value_or(0);
  site.table_passes = record.count("table_passes").value_or(0);
  site.grid = record.text("grid");
  site.block = record.text("block");
  site.provider = record.text("provider");
  site.default_choice = record.text("default");
  return {};
}

std::string ReportBuilder::add_trial(const Record& record) {
  const auto pass = record.count("pass");
  const auto config = record.count("config", most_configs);
  const auto iteration = record.count("iter", most_iterations);
  const auto warmup = record.count("warmup", most_iterations);
  if (record.find("site") == nullptr) return missing("trial", "site");
  if (!pass) return missing("trial", "pass");
  if (!config) return missing("trial", "config");
  if (!iteration && !warmup) return missing("trial", "iter or warmup");
  SiteReport& site = site_of(record);
  TrialReport& trial = site.trials.emplace_back();
  trial.pass = *pass;
  trial.config = static_cast<std::uint32_t>(*config);
  trial.iteration = iteration ? static_cast<int>(*iteration) : -static_cast<int>(*warmup);
  if (!iteration && trial.iteration == 0) trial.iteration = -1;
  trial.launches = record.count("launches").value_or(0);
  trial.seconds = seconds_of(record, "time_us");
  trial.region_seconds = seconds_of(record, "region_us");
  trial.at = clock_seconds(record.text("began"));
  trial.has_begin = !std::isnan(trial.at);
  if (!trial.has_begin) trial.at = clock_seconds(record.time);
  trial.timer = record.text("timer");
  trial.status = record.text("status");
  trial.agreed = record.text("agreed") == "yes";
  if (const auto mhz = record.number("sm_mhz")) trial.sm_clock_hz = *mhz * 1e6;
  site.configs[trial.config] = parameters_of(record);
  RegionReport& region = region_of(record);
  region.passes = std::max(region.passes, trial.pass + 1);
  return {};
}

std::string ReportBuilder::add_passes(const Record& record) {
  const auto first = record.count("pass");
  const auto last = record.count("last_pass");
  const auto config = record.count("config", most_configs);
  if (record.find("site") == nullptr) return missing("passes", "site");
  if (!first) return missing("passes", "pass");
  if (!last || *last < *first || *last - *first >= most_passes_of_a_line)
    return missing("passes", "last_pass");
  if (!config && record.find("config") != nullptr) return missing("passes", "config");
  SiteReport& site = site_of(record);
  PassesReport& passes = site.passes.emplace_back();
  passes.first = *first;
  passes.last = *last;
  passes.agreed = record.text("agreed") == "yes";
  if (config) {
    passes.config = static_cast<std::uint32_t>(*config);
    site.configs[*passes.config] = parameters_of(record);
  }
  return {};
}

std::string ReportBuilder::add_winner(const Record& record) {
  const auto config = record.count("config", most_configs);
  if (record.find("site") == nullptr) return missing("winner", "site");
  if (!config) return missing("winner", "config");
  SiteReport& site = site_of(record);
  site.winner = WinnerReport{static_cast<std::uint32_t>(*config), seconds_of(record, "time_us"),
                             seconds_of(record, "default_us"), std::string(record.text("reason")),
                             clock_seconds(record.time)};
  site.configs[site.winner->config] = parameters_of(record);
  if (const std::string* by_default = record.find("default_config"))
    site.configs.emplace(0, *by_default);
  return {};
}

std::string ReportBuilder::add_confirm(const Record& record) {
  if (record.find("region") == nullptr) return missing("confirm", "region");
  if (record.find("verdict") == nullptr) return missing("confirm", "verdict");
  RegionReport& region = region_of(record);
  if (record.find("left_out") != nullptr) {
    region.left_out.push_back(
        {std::string(record.text("left_out")), std::string(record.text("key")),
         std::string(record.text("verdict")), seconds_of(record, "before_us"),
         seconds_of(record, "after_us"), record.number("gain").value_or(not_known),
         record.number("bound").value_or(not_known), record.count("pairs").value_or(0)});
    return {};
  }
  region.confirms.push_back(confirm_of(record));
  return {};
}

std::string ReportBuilder::add_store(const Record& record) {
  if (record.find("region") == nullptr) return missing("store", "region");
  if (record.text("action") == "found" && record.find("verdict") != nullptr)
    region_of(record).stored_confirm = confirm_of(record);
  return {};
}

std::string ReportBuilder::add_fallback(const Record& record) {
  if (record.find("reason") == nullptr) return missing("fallback", "reason");
  FallbackReport told{std::string(record.text("reason")),
                      std::string(record.text("region")),
                      std::string(record.text("site")),
                      std::string(record.text("text")),
                      1,
                      clock_seconds(record.time)};
  const std::size_t process = place_of(record);
  std::vector<FallbackReport>& fallbacks = processes_[process].fallbacks;
  const auto [place, fresh] =
      indexes_[process].fallbacks.emplace(fallback_key(told), fallbacks.size());
  if (fresh) {
    fallbacks.push_back(std::move(told));
  } else {
    ++fallbacks[place->second].count;
  }
  return {};
}

std::string ReportBuilder::add_fault(const Record& record) {
  if (record.find("text") == nullptr) return missing("fault", "text");
  ProcessReport& process = process_of(record);
  process.faults.emplace_back(record.text("text"));
  process.fault_times.push_back(clock_seconds(record.time));
  return {};
}

std::string ReportBuilder::add_kernel(const Record& record) {
  const auto seconds = record.number("time_s");
  if (record.find("kernel") == nullptr) return missing("kernel", "kernel");
  std::vector<KernelReport>& kernels = region_of(record).kernels;
  const auto [place, fresh] = indexes_[place_of(record)].kernels.emplace(
      joined({record.text("region"), record.text("kernel"), record.text("key")}), kernels.size());
  if (fresh) kernels.emplace_back();
  KernelReport* const kernel = &kernels[place->second];
  kernel->name = record.text("kernel");
  kernel->key = record.text("key");
  kernel->launches = record.count("launches").value_or(0);
  kernel->seconds = seconds.value_or(not_known);
  kernel->grid = record.text("grid");
  kernel->block = record.text("block");
  kernel->shared_bytes = record.count("shared_bytes").value_or(0);
  kernel->registers = record.count("registers").value_or(0);
  kernel->params = record.text("params");
  kernel->timer = record.text("timer");
  return {};
}

std::string ReportBuilder::add_period(const Record& record) {
  if (record.find("region") == nullptr) return missing("period", "region");
  region_of(record).periods.emplace_back(record.text("text"));
  return {};
}

std::string ReportBuilder::add_ranges(const Record& record) {
  if (record.find("region") == nullptr) return missing("ranges", "region");
  region_of(record).ranges = record.text("names");
  return {};
}

std::string ReportBuilder::add_replay(const Record& record) {
  const auto visit = record.count("visit");
  const auto replays = record.count("replays");
  if (record.find("region") == nullptr) return missing("replay", "region");
  if (!visit) return missing("replay", "visit");
  if (!replays) return missing("replay", "replays");
  RegionReport& region = region_of(record);
  ReplayReport& replay = region.replays.emplace_back();
  replay.visit = *visit;
  replay.operations = record.count("operations").value_or(0);
  replay.replays = *replays;
  replay.seconds = record.number("time_s").value_or(not_known);
  replay.footprint_bytes = record.count("footprint_bytes").value_or(0);
  replay.dirty_bytes = record.count("dirty_bytes").value_or(0);
  replay.device_bytes = record.count("device_bytes").value_or(0);
  replay.host_bytes = record.count("host_bytes").value_or(0);
  replay.save_seconds = seconds_of(record, "save_us");
  replay.restore_seconds = seconds_of(record, "restore_us");
  replay.hash_seconds = seconds_of(record, "hash_us");
  replay.timed_after = record.text("timed_after");
  replay.why_restored = record.text("why_restored");
  replay.wait_seconds = seconds_of(record, "wait_us");
  replay.longest_wait_seconds = seconds_of(record, "longest_wait_us");
  replay.at = clock_seconds(record.time);
  return {};
}

std::string ReportBuilder::add_sync(const Record& record) {
  const auto question = record.count("question", std::numeric_limits<std::uint64_t>::max());
  if (record.find("group") == nullptr) return missing("sync", "group");
  if (!question) return missing("sync", "question");
  if (record.find("verdict") == nullptr) return missing("sync", "verdict");
  const double wait = seconds_of(record, "wait_us");
  double asked = clock_seconds(record.text("began"));
  if (std::isnan(asked)) asked = clock_seconds(record.time) - (wait > 0 ? wait : 0);
  process_of(record).syncs.push_back(
      {std::string(record.text("region")), std::string(record.text("group")),
       record.count("group_rank").value_or(0), *question, std::string(record.text("hash")), wait,
       std::string(record.text("verdict")), std::string(record.text("text")), asked});
  return {};
}

std::string ReportBuilder::add_summary(const Record& record) {
  ProcessReport& process = process_of(record);
  if (const auto outside = record.count("launches_outside")) process.launches_outside = outside;
  if (record.find("region") == nullptr) return {};
  RegionReport& region = region_of(record);
  region.passes = record.count("passes").value_or(region.passes);
  region.entries = record.count("entries").value_or(region.entries);
  region.tuning_seconds = record.number("tuning_s").value_or(region.tuning_seconds);
  if (record.find("stage") != nullptr) region.stage = record.text("stage");
  region.is_in_table = false;
  return {};
}

}  // namespace contextune::log
