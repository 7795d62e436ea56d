#include <algorithm>
#include <cmath>

#include "cli/compare/side.hpp"
#include "cli/store/store_text.hpp"
#include "core/submission/submission_stored.hpp"
#include "core/trials/stored_winner.hpp"
#include "log/logfmt.hpp"

namespace contextune::cli {
namespace {

using store::Entry;

std::string value_of(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return contextune::to_string(value);
}

std::string fact_of(const Facts& facts, std::string_view name) {
  for (const auto& [known, value] : facts)
    if (known == name) return value;
  return {};
}

std::string key_text(const Key& key, bool with_code) {
  std::string text;
  for (const auto& [name, part] : key.entries()) {
    if (name == "code" && !with_code) continue;
    const auto* const number = std::get_if<std::int64_t>(&part);
    log::append_field(text, name,
                      number != nullptr ? std::to_string(*number) : std::get<std::string>(part));
  }
  return text;
}

const StoredTrial* find_trial(const StoredSite& site, const Config& config) {
  const auto found = std::ranges::find_if(
      site.trials, [&](const StoredTrial& trial) { return trial.config == config; });
  return found == site.trials.end() ? nullptr : &*found;
}

double clock_of(const StoredSite& site) {
  std::vector<double> values;
  for (const StoredTrial& trial : site.trials)
    for (const double seconds : {trial.low_seconds, trial.seconds, trial.high_seconds})
      if (seconds > 0 && std::isfinite(seconds)) values.push_back(seconds);
  return resolution_of(std::move(values));
}

/// @param trial null: there is none
MeasuredTime time_of(const StoredSite& site, double seconds, const StoredTrial* trial) {
  MeasuredTime time;
  time.median = seconds;
  if (trial != nullptr && trial->samples > 0 && trial->low_seconds > 0 &&
      std::isfinite(trial->high_seconds)) {
    time.median = trial->seconds;
    time.count = trial->samples;
    time.fastest = trial->low_seconds;
    time.slowest = trial->high_seconds;
    time.resolution = clock_of(site);
  } else {
    time.lacking = seconds > 0 ? "the store has no spread" : "no time is stored";
  }
  return time;
}

ComparedSite compared_site(const StoredSite& site) {
  ComparedSite compared;
  compared.name = site.name;
  compared.key = key_text(site.key, true);
  compared.loose_key = key_text(site.key, false);
  compared.by_default =
      time_of(site, site.default_seconds, site.trials.empty() ? nullptr : &site.trials.front());
  if (site.reason == WinnerReason::NoSamples) {
    compared.settled.lacking = "not decided";
    return compared;
  }
  compared.settled = time_of(site, site.seconds, find_trial(site, site.winner));
  compared.winner.emplace();
  for (const auto& [name, value] : site.winner.entries())
    compared.winner->parameters.emplace_back(name, value_of(value));
  compared.winner->is_default = keeps_default(site);
  compared.winner->text =
      site.winner.empty()
          ? (site.default_choice.empty() ? "as launched" : log::printable(site.default_choice))
          : log::printable(site.winner.to_string());
  return compared;
}

void add_launches(const SubmissionState& state, ComparedRegion& region) {
  const SubmissionVerdict& verdict = state.verdict;
  region.launches = {text_of(verdict.winner), verdict.settled ? "settled" : "open"};
  ComparedGain& gain = region.gains.emplace_back();
  gain.figures = {verdict.gain, verdict.low, static_cast<std::uint64_t>(verdict.pairs),
                  verdict.winner.is_as_written(), ""};
}

ComparedRegion compared_entry(const Entry& entry) {
  ComparedRegion region;
  region.kind = to_string(entry.kind);
  region.name = entry.name;
  region.gpu = fact_of(entry.hardware, "gpu");
  for (const auto& [name, value] : entry.hardware) log::append_field(region.hardware, name, value);
  region.simulated = std::ranges::any_of(entry.software, [](const auto& software) {
    return fact_of(software.second, "driver") == "simulated";
  });
  if (entry.confirm) {
    const StoredConfirm& figures = entry.confirm->figures;
    ComparedGain& gain = region.gains.emplace_back();
    gain.verdict = to_string(figures.verdict);
    gain.figures = {figures.gain, figures.bound, static_cast<std::uint64_t>(figures.pairs),
                    figures.verdict == ConfirmVerdict::Defaults, ""};
    if (figures.verdict == ConfirmVerdict::Skipped)
      gain.figures.lacking = "not compared with the defaults";
  }
  for (const store::EntrySite& site : entry.sites) {
    if (const auto state = submission_of(site.site)) {
      add_launches(*state, region);
    } else {
      region.sites.push_back(compared_site(site.site));
    }
  }
  note_defaults(region);
  return region;
}

std::string last_tuned(const Entry& entry) {
  std::string last;
  for (const store::EntrySite& site : entry.sites) last = std::max(last, site.site.tuned_at);
  return last;
}

}  // namespace

ComparedSide side_of_store(const std::string& where, const store::Listing& listing) {
  ComparedSide side;
  side.where = where;
  for (const store::ListedFile& file : listing.files) {
    if (file.content.state != store::FileState::Good) continue;
    const ComparedRegion& region = side.regions.emplace_back(compared_entry(file.content.entry));
    side.time = std::max(side.time, last_tuned(file.content.entry));
    side.simulated = side.simulated || region.simulated;
    side.is_real = side.is_real || !region.simulated;
  }
  if (!side.regions.empty()) {
    const std::string& gpu = side.regions.front().gpu;
    const bool is_one = std::ranges::all_of(
        side.regions, [&](const ComparedRegion& region) { return region.gpu == gpu; });
    if (!gpu.empty()) side.facts.emplace_back("GPU", is_one ? gpu : "several GPUs");
  }
  side.problems = problems_of(listing);
  return side;
}

}  // namespace contextune::cli
