// Gives up configs that fail, are wrong or take too long, and results that do not come.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "core/search/tuning_engine.hpp"

namespace contextune {
namespace {

std::string text_of(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g s", seconds);
  return text.data();
}

std::string text_of(std::uint64_t bytes) {
  constexpr std::uint64_t mebibyte = 1U << 20U;
  return std::to_string(bytes / mebibyte + (bytes % mebibyte != 0 ? 1 : 0)) + " MiB";
}

}  // namespace

void Tuning::Engine::fail_config(SiteIndex index, std::uint32_t config, int iteration) {
  TuningSite& site = sites_[index];
  if (site.progress && config < site.spec.configs.size()) site.progress->fail(config, iteration);
  const bool was_winner = site.known == config && (stage_ == Stage::Finished || site.spec.stored);
  if (!give_up_config(index, config)) return;
  observer_.fallback(was_winner ? FallbackReason::WinnerFailed : FallbackReason::LaunchFailed,
                     index,
                     "Config " + std::to_string(config) + " of '" + site.spec.name +
                         "' could not be launched; the default ran in its place.");
}

void Tuning::Engine::fail_as_seen(const SiteResult& seen, std::uint32_t config, int iteration,
                                  std::uint64_t number) {
  if (seen.status == SiteResult::Status::LaunchFailed)
    return fail_config(seen.site, config, iteration);
  TuningSite& site = sites_[seen.site];
  const bool has_trials = site.progress && config < site.spec.configs.size();
  if (has_trials) site.progress->fail(config, iteration, TrialStatus::TooMuchMemory);
  if (!give_up_config(seen.site, config)) return;
  observer_.fallback(FallbackReason::CommMemory, seen.site,
                     "Config " + std::to_string(config) + " of '" + site.spec.name +
                         "' is given up: its algorithm took " + text_of(seen.connection_bytes) +
                         " of device memory for its connections, and --comm-memory allows " +
                         text_of(options_.comm_memory) +
                         ". The connections stay until the communicator ends; with a larger "
                         "--comm-memory the config is tried again.");
  if (has_trials) return;
  // No trial of its own tells what became of it.
  TrialEvent event;
  event.pass = number;
  event.site = seen.site;
  event.config = config;
  event.seconds = no_sample;
  event.status = TrialStatus::TooMuchMemory;
  observer_.trial(event);
}

double Tuning::Engine::took(const SiteResult& seen) {
  return seen.seconds * std::max(1U, seen.launches);
}

bool Tuning::Engine::took_too_long(const SiteResult& seen) const {
  return seen.status == SiteResult::Status::Measured && took(seen) > options_.trial_timeout;
}

void Tuning::Engine::time_out(SiteIndex index, std::uint32_t config, int iteration,
                              double seconds) {
  TuningSite& site = sites_[index];
  // However slow the default is, the program has it.
  if (config == 0) return;
  if (site.progress) site.progress->fail(config, iteration, TrialStatus::TimedOut);
  if (!give_up_config(index, config)) return;
  std::string took = " had not ended";
  if (std::isfinite(seconds)) took = " took " + text_of(seconds) + " in one pass";
  observer_.fallback(FallbackReason::TrialTimeout, index,
                     "Config " + std::to_string(config) + " of '" + site.spec.name + "'" + took +
                         ", and trial_timeout is " + text_of(options_.trial_timeout) +
                         "; it is never chosen.");
}

void Tuning::Engine::overrun(double now) {
  budget_.clock().reach_at_least(now);
  if (stage_ == Stage::Finished) return;
  budget_.overrun();
  const auto tried = under_way();
  std::string blame;
  if (tried.size() == 1) {
    const auto [index, config] = tried.front();
    time_out(index, config, 0, no_sample);
    TrialEvent event;
    event.pass = pending_.all().begin()->second.number;
    event.site = index;
    event.config = config;
    event.seconds = no_sample;
    event.status = TrialStatus::TimedOut;
    observer_.trial(event);
  } else if (!tried.empty()) {
    blame = " None of the " + std::to_string(tried.size()) +
            " configs that were under way is blamed for it yet.";
  }
  observer_.fallback(FallbackReason::TrialTimeout, no_site,
                     "A pass had not ended after trial_timeout, " +
                         text_of(options_.trial_timeout) +
                         ", so the search ends with what it knows; nothing of contextune waits "
                         "for it any more." +
                         blame);
  // Nothing is known of what they tried, and to the next run it is as if it had not been tried.
  pending_.clear();
  advance();
}

std::vector<std::pair<SiteIndex, std::uint32_t>> Tuning::Engine::under_way() const {
  std::vector<std::pair<SiteIndex, std::uint32_t>> tried;
  for (const auto& [id, pass] : pending_.all()) {
    for (SiteIndex index = 0; index < pass.configs.size(); ++index) {
      const TuningSite& site = sites_[index];
      const std::uint32_t config = pass.configs[index];
      if (!sites_.is_current(site) || site.trivial || config == 0 || config == site.known) continue;
      // A config that has ended once is not the first to think of.
      const auto came = [](double sample) { return !std::isnan(sample); };
      if (site.progress) {
        const Trial& trial = site.progress->trials()[config];
        if (std::ranges::any_of(trial.samples, came) || std::ranges::any_of(trial.warmup, came))
          continue;
      }
      const std::pair one{index, config};
      if (std::ranges::find(tried, one) == tried.end()) tried.push_back(one);
    }
  }
  return tried;
}

void Tuning::Engine::reject_config(SiteIndex index, std::uint32_t config, const std::string& detail,
                                   Rejection why) {
  if (index >= sites_.size() || config >= sites_[index].spec.configs.size()) return;
  const bool is_wrong = why == Rejection::Wrong;
  const TrialStatus status = is_wrong ? TrialStatus::WrongResult : TrialStatus::NotCompared;
  if (!give_up_config(index, config, status)) return;
  TuningSite& site = sites_[index];
  if (site.progress)
    site.progress->fail(config, -site.spec.n_warmup.value_or(options_.n_warmup), status);
  observer_.fallback(is_wrong ? FallbackReason::WrongResult : FallbackReason::NotCompared, index,
                     detail);
}

void Tuning::Engine::keep_default(SiteIndex index) {
  if (index >= sites_.size()) return;
  TuningSite& site = sites_[index];
  for (std::uint32_t config = 1; config < site.spec.configs.size(); ++config)
    (void)give_up_config(index, config);
  sites_.choose(index, 0);
  site.settled = site.trivial = true;
  site.reason = WinnerReason::NoSamples;
}

bool Tuning::Engine::give_up_config(SiteIndex index, std::uint32_t config, TrialStatus why) {
  TuningSite& site = sites_[index];
  // The default that fails is the program's own affair.
  if (config == 0 || !site.failed.emplace(config, why).second) return false;
  if (site.known == config) {
    sites_.choose(index, 0);
    site.reason = WinnerReason::Failed;
  }
  refinement_.exclude(index, config);
  return true;
}

void Tuning::Engine::give_up_waiting() {
  const std::uint64_t waited = pending_.stop_waiting();
  observer_.fallback(FallbackReason::LateResults, no_site,
                     "The results of " + std::to_string(pending_.all().size()) +
                         " passes did not come in " + std::to_string(waited) +
                         " entries and count as missing.");
  while (!pending_.all().empty()) resolve(pending_.take(pending_.all().begin()->first), nullptr);
}

}  // namespace contextune
