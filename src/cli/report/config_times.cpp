#include "cli/report/config_times.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "cli/report/summary.hpp"
#include "cli/words/colour.hpp"
#include "log/logfmt.hpp"

namespace contextune::cli {
namespace {

using log::SiteReport;
using Parameters = std::vector<log::ParsedField>;

double median_of(std::vector<double>& sorted) {
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

ConfigTimes times_of(std::uint32_t config, const std::vector<const log::TrialReport*>& trials) {
  ConfigTimes times;
  times.config = config;
  std::vector<double> samples;
  for (const log::TrialReport* trial : trials) {
    const bool counts = trial->iteration >= 0 && trial->status.empty();
    if (counts && std::isfinite(trial->seconds)) samples.push_back(trial->seconds);
    if (!trial->status.empty()) times.status = trial->status;
  }
  if (samples.empty()) {
    if (times.status.empty()) times.status = "untried";
    return times;
  }
  // A pass or two that did not count are no news where others did.
  if (times.status == "throttled" || times.status == "missing") times.status.clear();
  std::sort(samples.begin(), samples.end());
  times.median = median_of(samples);
  if (times.median > 0) times.spread = (samples.back() - samples.front()) / times.median;
  return times;
}

bool goes_before(const ConfigTimes& a, const ConfigTimes& b) {
  const auto rank = [](const ConfigTimes& times) {
    return std::isfinite(times.median) ? times.median : std::numeric_limits<double>::infinity();
  };
  return std::pair(rank(a), a.config) < std::pair(rank(b), b.config);
}

bool is_winner(const SiteReport& site, std::uint32_t config) {
  return site.winner && site.winner->config == config;
}

// A winner helps the region, though alone it may be slower than the default.
std::string why_winner(const log::WinnerReport& winner, const log::LeftOutReport* left_out) {
  const bool is_known = left_out != nullptr && std::isfinite(left_out->gain);
  const std::string share = is_known ? percent_text(std::abs(left_out->gain)) : "";
  if (winner.reason == "dropped") {
    if (!is_known) return ", another was dropped";
    return left_out->gain < 0 ? ", another was dropped: region " + share + " less without it"
                              : ", another was dropped: not shown to help the region";
  }
  if (winner.config == 0) return {};
  if (is_known) return ", region " + share + (left_out->gain < 0 ? " more" : " less") + " with it";
  if (winner.reason == "stored" || winner.reason == "pinned" || winner.reason == "nearest")
    return ", " + winner.reason;
  return winner.reason == "region" ? ", by the time of the region" : "";
}

std::string status_of(const SiteReport& site, const ConfigTimes& times,
                      const log::LeftOutReport* left_out) {
  std::string text = times.config == 0 ? "default" : "";
  if (times.config == 0 && !site.winner) text += ", undecided";
  if (is_winner(site, times.config)) {
    text += text.empty() ? "winner" : ", winner";
    text += why_winner(*site.winner, left_out);
  }
  const bool is_said = times.status.empty() || (times.status == "untried" && !text.empty());
  if (!is_said) text += (text.empty() ? "" : ", ") + times.status;
  return log::printable(text);
}

// The winner stands out, and what lost steps back; the default is what they are compared with.
std::optional<Tone> tone_of(const SiteReport& site, std::uint32_t config) {
  if (is_winner(site, config)) return config == 0 ? Tone::Strong : Tone::Good;
  return config == 0 ? std::optional<Tone>() : Tone::Faint;
}

std::string against_default(double median, double by_default) {
  if (!std::isfinite(median) || !(by_default > 0)) return "-";
  const double saved = 1 - median / by_default;
  return percent_text(std::abs(saved)) + (saved >= 0 ? " less" : " more");
}

std::string counts_text(const std::map<std::string, std::size_t>& counts) {
  std::string text;
  for (const auto& [status, count] : counts)
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " +
            (status.empty() ? "slower" : log::printable(status));
  return text;
}

}  // namespace

std::vector<ConfigTimes> configs_by_time(const SiteReport& site) {
  std::map<std::uint32_t, std::vector<const log::TrialReport*>> trials;
  for (const auto& [config, parameters] : site.configs) trials[config];
  trials[0];
  for (const log::TrialReport& trial : site.trials) trials[trial.config].push_back(&trial);
  std::vector<ConfigTimes> list;
  for (const auto& [config, of_config] : trials) {
    ConfigTimes& times = list.emplace_back(times_of(config, of_config));
    if (!site.trials.empty() || !site.winner || std::isfinite(times.median)) continue;
    if (is_winner(site, config)) {
      times.median = site.winner->seconds;
    } else if (config == 0) {
      times.median = site.winner->default_seconds;
    }
  }
  std::sort(list.begin(), list.end(), goes_before);
  return list;
}

std::vector<log::ParsedField> parameters_of(std::string_view text) {
  std::vector<log::ParsedField> fields;
  log::ParsedField field;
  std::string ignored;
  while (!text.empty() && log::take_field(text, field, ignored)) fields.push_back(field);
  return fields;
}

DifferingValues::DifferingValues(const SiteReport& site) : site_(site) {
  const Parameters* first = nullptr;
  Parameters of_first;
  std::size_t num_configs = 0;
  std::vector<bool> is_common;
  for (const auto& [config, text] : site.configs) {
    if (text.empty()) continue;
    const Parameters fields = parameters_of(text);
    ++num_configs;
    if (first == nullptr) {
      of_first = fields;
      first = &of_first;
      is_common.assign(of_first.size(), true);
      continue;
    }
    for (std::size_t i = 0; i < of_first.size(); ++i) {
      const auto same = std::find_if(fields.begin(), fields.end(), [&](const auto& field) {
        return field.name == of_first[i].name && field.value == of_first[i].value;
      });
      if (same == fields.end()) is_common[i] = false;
    }
  }
  // A single config does not show what would differ.
  if (num_configs < 2) return;
  for (std::size_t i = 0; i < of_first.size(); ++i)
    if (is_common[i]) log::append_field(common_, of_first[i].name, of_first[i].value);
}

std::string DifferingValues::of(std::uint32_t config) const {
  const auto found = site_.configs.find(config);
  if (common_.empty() || found == site_.configs.end()) return config_text(site_, config);
  const Parameters shared = parameters_of(common_);
  std::string text;
  for (const log::ParsedField& field : parameters_of(found->second)) {
    const auto same = std::find_if(shared.begin(), shared.end(),
                                   [&](const auto& other) { return other.name == field.name; });
    if (same == shared.end()) log::append_field(text, field.name, field.value);
  }
  return text.empty() ? config_text(site_, config) : log::printable(text);
}

ConfigTable::ConfigTable(std::size_t width, std::size_t most_rows)
    : width_(width), most_rows_(most_rows), table_({3, 4, 5}) {
  table_.add({"site", "config", "", "median", "spread", "than the default", ""});
}

void ConfigTable::add(const SiteReport& site, const std::string& label,
                      const log::LeftOutReport* left_out) {
  const std::vector<ConfigTimes> list = configs_by_time(site);
  const DifferingValues values(site);
  const auto is_marked = [&](const ConfigTimes& times) {
    return times.config == 0 || is_winner(site, times.config);
  };
  const auto by_default = std::find_if(list.begin(), list.end(),
                                       [](const ConfigTimes& times) { return times.config == 0; });
  auto room = static_cast<std::size_t>(std::count_if(list.begin(), list.end(), is_marked));
  room = most_rows_ - std::min(room, most_rows_);
  std::map<std::string, std::size_t> others;
  bool is_first = true;
  for (const ConfigTimes& times : list) {
    if (!is_marked(times)) {
      if (room == 0) {
        ++others[times.status];
        continue;
      }
      --room;
    }
    std::vector<std::string> cells = {
        "config-" + std::to_string(times.config),
        shortened(values.of(times.config), width_ * 2 / 5),
        time_text(times.median),
        percent_text(times.spread),
        times.config == 0 ? "-" : against_default(times.median, by_default->median),
        status_of(site, times, left_out)};
    const auto tone = tone_of(site, times.config);
    for (std::string& cell : cells)
      if (tone) cell = in_tone(*tone, cell);
    cells.insert(cells.begin(), is_first ? label : "");
    table_.add(std::move(cells));
    is_first = false;
  }
  empty_ = false;
  if (!site.trials.empty() && site.num_configs > list.size())
    others["untried"] += site.num_configs - list.size();
  if (!others.empty()) table_.add({"", "", in_tone(Tone::Faint, counts_text(others))});
  if (!values.common().empty())
    table_.add({"", "", shortened("all with " + log::printable(values.common()), width_ * 2 / 5)});
}

std::string ConfigTable::to_string(std::string_view indent) const {
  return empty_ ? std::string() : table_.to_string(indent);
}

}  // namespace contextune::cli
