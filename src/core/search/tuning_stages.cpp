#include <algorithm>
#include <cmath>

#include "core/search/statistics.hpp"
#include "core/search/tuning_engine.hpp"

namespace contextune {
bool Tuning::Engine::generation_is_open() const {
  return stage_ == Stage::Table && generation_passes_ < options_.generation_window;
}

void Tuning::Engine::take_in(SiteIndex index) {
  take_suspicions(index);
  take_stored(index);
  const TuningSite& site = sites_[index];
  if (generation_is_open()) {
    admit(index);
  } else if (site.trivial) {
    observer_.winner(
        {index, site.known, own_cost(site, site.known), own_cost(site, 0), site.reason});
  }
}

void Tuning::Engine::admit(SiteIndex index) {
  TuningSite& site = sites_[index];
  site.generation = generation_;
  site.last_launched = generation_passes_;
  if (site.trivial || site.spec.objective == Objective::Region) return;
  if (site.is_stored()) {
    site.settled = true;
    if (site.suspected) suspects_.push_back({index, site.known, 0});
    return;
  }
  const ScheduleShape shape{static_cast<std::uint32_t>(site.spec.configs.size()),
                            std::max(0, site.spec.n_warmup.value_or(options_.n_warmup)),
                            std::max(1, site.spec.n_repeat.value_or(options_.n_repeat))};
  site.progress.emplace(shape, options_.schedule, options_.cutoff);
  for (const std::uint32_t config : site.failed) {
    site.progress->exclude(config, site.crashed.contains(config)      ? TrialStatus::Crashed
                                   : site.wrong.contains(config)      ? TrialStatus::WrongResult
                                   : site.uncompared.contains(config) ? TrialStatus::NotCompared
                                                                      : TrialStatus::LaunchFailed);
  }
  for (std::uint32_t config = 1; site.spec.stored && config < shape.num_configs; ++config)
    if (!site.spec.stored->has_to_try(config)) site.progress->exclude(config, TrialStatus::Known);
  for (const std::uint32_t config : site.spec.suspicions.suspects)
    if (config < shape.num_configs && site.progress->runs({Step::Kind::Run, config, 0}) == config &&
        config != 0)
      suspects_.push_back({index, config, 0});
  // First launched in the very pass that is going on: that is its pass 0, with config 0.
  if (open_ && pending_.at(*open_).stage == Stage::Table) {
    pending_.at(*open_).trials.push_back({index, site.progress->next(), 0, false});
  }
}

bool Tuning::Engine::wants_generation(const TuningSite& site) const {
  return !site.generation && site.ready && !site.trivial &&
         site.times_launched >= launches_to_count && !over_budget(false);
}

bool Tuning::Engine::start_generation() {
  if (std::none_of(sites_.begin(), sites_.end(),
                   [this](const TuningSite& site) { return wants_generation(site); })) {
    return false;
  }
  ++generation_;
  generation_passes_ = 0;
  enter(Stage::Table);
  for (SiteIndex index = 0; index < sites_.size(); ++index)
    if (wants_generation(sites_[index])) admit(index);
  return true;
}

void Tuning::Engine::enter(Stage stage) {
  if (stage_ == stage) return;
  stage_ = stage;
  waited_ = 0;
  observer_.stage(stage, generation_);
}

bool Tuning::Engine::stalled(const TuningSite& site) const {
  return generation_passes_ - site.last_launched > options_.stall_passes;
}

bool Tuning::Engine::table_has_work() const {
  return std::any_of(sites_.begin(), sites_.end(), [this](const TuningSite& site) {
    return site.generation == generation_ && site.progress && !site.settled && !stalled(site) &&
           site.progress->next().kind == Step::Kind::Run;
  });
}

bool Tuning::Engine::a_site_waits() const {
  return std::any_of(sites_.begin(), sites_.end(), [this](const TuningSite& site) {
    return site.generation == generation_ && site.progress && !site.settled &&
           site.progress->next().kind == Step::Kind::Wait;
  });
}

void Tuning::Engine::advance() {
  // Never in the middle of an entry: its plan is out.
  while (!entered_) {
    skip_failed_slots();
    switch (stage_) {
      case Stage::Finished:
        if (!start_generation()) return;
        break;
      case Stage::Table:
        settle_sites(false);
        if (over_budget(false)) {
          pending_.clear();
          give_up_suspects();
        } else if (!suspects_.empty()) {
          return;
        } else if ((generation_passes_ == 0 && !store_settles_all()) || table_has_work() ||
                   !pending_.empty()) {
          return;
        }
        finish_table();
        break;
      case Stage::Refine:
        if (over_budget(false)) {
          take_refined();
        } else if (experiment_.complete()) {
          refine_->complete(experiment_.samples());
          if (!experiment_advances()) take_refined();
        } else {
          return;
        }
        break;
      case Stage::Confirm:
        if (experiment_.complete()) {
          comparison_->complete(experiment_.samples());
          if (experiment_advances()) break;
          left_out_ ? finish_left_out() : finish_try();
        } else if ((overran_ || experiment_.has_next()) && over_budget(true)) {
          if (shown_ && !overran_) {
            cut_confirm_short();
          } else {
            finish_confirm(ConfirmVerdict::Defaults);
          }
        } else {
          return;
        }
        break;
    }
  }
}

void Tuning::Engine::settle_sites(bool even_unfinished) {
  for (SiteIndex index = 0; index < sites_.size(); ++index) {
    TuningSite& site = sites_[index];
    if (site.generation != generation_ || !site.progress || site.settled) continue;
    const bool finished = site.progress->finished();
    if (!finished && !even_unfinished) continue;
    site.settled = true;
    const std::vector<Trial>& trials = site.progress->trials();
    if (!finished && !over_budget(false)) {
      site.reason = WinnerReason::NoSamples;
      observer_.fallback(FallbackReason::SeldomLaunched, index,
                         "'" + site.spec.name + "' was not launched for " +
                             std::to_string(options_.stall_passes) +
                             " passes and keeps its default.");
      continue;
    }
    const std::vector<double> costs = dense_costs(trials, options_.selection);
    std::vector<double> spreads;
    for (std::uint32_t config = 0; config < costs.size(); ++config) {
      spreads.push_back(measured_spread(trials, config));
      if (trials[config].status == TrialStatus::NoSample) {
        observer_.fallback(FallbackReason::NoSamples, index,
                           "Config " + std::to_string(config) + " of '" + site.spec.name +
                               "' got no sample twice and counts as failed.");
      }
    }
    const SelectedConfig choice = select_winner(costs, spreads, options_.margin);
    site.known = winners_[index] = choice.config;
    const bool beats_any = std::any_of(trials.begin(), trials.end(), [](const Trial& trial) {
      return trial.status == TrialStatus::CutOff;
    });
    site.reason =
        choice.reason == WinnerReason::Failed && beats_any ? WinnerReason::Fastest : choice.reason;
  }
}

bool Tuning::Engine::over_budget(bool for_confirm) const {
  if (overran_) return true;
  if (options_.max_passes > 0) {
    const std::uint64_t kept =
        options_.confirm && !for_confirm
            ? static_cast<std::uint64_t>(2 * std::max(2, options_.confirm_min_pairs) + 1)
            : 0;
    if (passes_ + kept >= options_.max_passes) return true;
  }
  // A fifth of the time is kept for showing that it was worth it.
  const double share = options_.confirm && !for_confirm ? 0.8 : 1.0;
  return options_.max_time > 0 && !std::isnan(first_now_) &&
         last_now_ - first_now_ >= share * options_.max_time;
}

bool Tuning::Engine::trials_cost_too_much() const {
  return options_.max_slowdown > 0 &&
         trials_cost_ > options_.max_slowdown * (last_now_ - first_now_) + options_.grace_seconds;
}

void Tuning::Engine::finish_table() {
  if (over_budget(false) && !said_over_budget_) {
    said_over_budget_ = true;
    observer_.fallback(
        FallbackReason::Budget, no_site,
        "The tuning reached its limit on passes or time after " + std::to_string(passes_) +
            " passes; sites without a config shown to be better keep their default.");
  }
  settle_sites(true);
  const bool in_pieces =
      options_.confirm && std::any_of(sites_.begin(), sites_.end(),
                                      [](const TuningSite& site) { return site.in_pieces; });
  if ((options_.refine || in_pieces) && !over_budget(false)) {
    start_refine();
  } else {
    start_confirm();
  }
}

double Tuning::Engine::own_cost(const TuningSite& site, std::uint32_t config) const {
  if (site.progress) {
    const Trial& trial = site.progress->trials()[config];
    return trial.given_up() ? no_sample : cost_of(trial.measured(), options_.selection);
  }
  if (site.is_stored()) {
    // Both of one run: what this one measured by the way has nothing to be compared with.
    const StoredWinner& stored = *site.spec.stored;
    if (config == stored.config && !std::isnan(stored.seconds)) return stored.seconds;
    if (config == site.known && !site.idle_samples.empty()) return median(site.idle_samples);
    return config == 0 ? stored.default_seconds : no_sample;
  }
  return config == 0 || site.trivial ? median(site.idle_samples) : no_sample;
}

double Tuning::Engine::own_gain(const TuningSite& site) const {
  const double gain = (own_cost(site, site.base()) - own_cost(site, site.known)) * site.launches;
  // Where its own time says nothing, it is the first to go.
  return std::isnan(gain) ? -std::numeric_limits<double>::infinity() : gain;
}

NoisePrior Tuning::Engine::region_noise() const {
  const NoisePrior seen = baseline_.noise();
  if (seen.degrees > 0) return seen;
  PooledNoise noise;
  for (const TuningSite& site : sites_) {
    if (site.generation != generation_ || !site.progress) continue;
    for (const Trial& trial : site.progress->trials()) noise.add(trial.measured());
  }
  return {noise.relative(), std::min<std::size_t>(noise.degrees(), 4)};
}

std::vector<SiteIndex> Tuning::Engine::changed_sites() const {
  std::vector<SiteIndex> changed;
  for (SiteIndex index = 0; index < sites_.size(); ++index) {
    const TuningSite& site = sites_[index];
    if (site.generation == generation_ && !site.trivial && site.known != site.base())
      changed.push_back(index);
  }
  return changed;
}

void Tuning::Engine::finish_generation() {
  pending_.clear();
  experiment_.clear();
  refine_.reset();
  comparison_.reset();
  for (SiteIndex index = 0; index < sites_.size(); ++index) {
    TuningSite& site = sites_[index];
    if (site.generation != generation_) continue;
    winners_[index] = site.known;
    const bool was_compared =
        !site.idle_samples.empty() ||
        std::find(refined_sites_.begin(), refined_sites_.end(), index) != refined_sites_.end();
    if (site.spec.objective == Objective::Region && !site.trivial && site.known == 0 &&
        site.reason == WinnerReason::NoSamples && was_compared) {
      site.reason = WinnerReason::Margin;
    }
    observer_.winner({index, site.known, own_cost(site, site.known), own_cost(site, 0), site.reason,
                      site.reason == WinnerReason::Dropped && over_budget(true)});
  }
  finished_at_ = last_now_;
  enter(Stage::Finished);
}

}  // namespace contextune
