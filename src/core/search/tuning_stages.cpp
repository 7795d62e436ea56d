#include <algorithm>

#include "core/search/selection.hpp"
#include "core/search/tuning_engine.hpp"
#include "core/trials/statistics.hpp"

namespace contextune {
bool Tuning::Engine::generation_is_open() const {
  return stage_ == Stage::Table && sites_.table_passes() < options_.generation_window;
}

void Tuning::Engine::take_in(SiteIndex index) {
  take_suspicions(index);
  take_stored(index);
  const TuningSite& site = sites_[index];
  if (generation_is_open()) {
    admit(index);
  } else if (site.trivial) {
    observer_.winner({index, site.known, site.cost(site.known, options_.selection),
                      site.cost(0, options_.selection), site.reason});
  }
}

void Tuning::Engine::admit(SiteIndex index) {
  TuningSite& site = sites_[index];
  site.generation = sites_.generation();
  site.last_launched = sites_.table_passes();
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
  for (const auto& [config, why] : site.failed) site.progress->exclude(config, why);
  for (std::uint32_t config = 1; site.spec.stored && config < shape.num_configs; ++config)
    if (!site.spec.stored->has_to_try(config)) site.progress->exclude(config, TrialStatus::Known);
  for (const std::uint32_t config : site.spec.suspicions.suspects)
    if (config < shape.num_configs && site.progress->runs({Step::Kind::Run, config, 0}) == config &&
        config != 0)
      suspects_.push_back({index, config, 0});
  // First launched in the very pass that is going on: that is its pass 0, with config 0.
  PendingPass* const pass = pending_.open_pass();
  if (pass != nullptr && pass->stage == Stage::Table)
    pass->trials.push_back({index, site.progress->next(), 0, false});
}

bool Tuning::Engine::wants_generation(const TuningSite& site) const {
  return !site.generation && site.ready && !site.trivial &&
         site.times_launched >= launches_to_count && !budget_.is_spent(false);
}

bool Tuning::Engine::start_generation() {
  if (std::ranges::none_of(sites_,
                           [this](const TuningSite& site) { return wants_generation(site); })) {
    return false;
  }
  sites_.start_generation();
  enter(Stage::Table);
  for (SiteIndex index = 0; index < sites_.size(); ++index)
    if (wants_generation(sites_[index])) admit(index);
  return true;
}

void Tuning::Engine::enter(Stage stage) {
  if (stage_ == stage) return;
  stage_ = stage;
  pending_.stop_waiting();
  observer_.stage(stage, sites_.generation());
}

bool Tuning::Engine::table_has_work() const {
  return std::ranges::any_of(sites_, [this](const TuningSite& site) {
    return sites_.is_current(site) && site.progress && !site.settled && !sites_.stalled(site) &&
           site.progress->next().kind == Step::Kind::Run;
  });
}

bool Tuning::Engine::a_site_waits() const {
  return std::ranges::any_of(sites_, [this](const TuningSite& site) {
    return sites_.is_current(site) && site.progress && !site.settled &&
           site.progress->next().kind == Step::Kind::Wait;
  });
}

void Tuning::Engine::advance() {
  // Never in the middle of an entry: its plan is out.
  while (!pending_.entered()) {
    skip_failed_slots();
    switch (stage_) {
      case Stage::Finished:
        if (!start_generation()) return;
        break;
      case Stage::Table:
        settle_sites(false);
        if (budget_.is_spent(false)) {
          pending_.clear();
          give_up_suspects();
        } else if (!suspects_.empty()) {
          return;
        } else if ((sites_.table_passes() == 0 && !store_settles_all()) || table_has_work() ||
                   !pending_.all().empty()) {
          return;
        }
        finish_table();
        break;
      case Stage::Refine:
        if (budget_.is_spent(false)) {
          finish_refine();
        } else if (experiment_.complete()) {
          refinement_.complete(experiment_.samples());
          if (!refinement_.start_next(experiment_)) finish_refine();
        } else {
          return;
        }
        break;
      case Stage::Confirm:
        if (experiment_.complete()) {
          confirmation_.complete(experiment_.samples(), bounded_);
          if (!confirmation_.start_next(experiment_)) finish_confirm();
        } else if ((budget_.has_overrun() || experiment_.has_next()) && budget_.is_spent(true)) {
          confirmation_.cut_short(budget_.has_overrun());
          finish_confirm();
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
    if (!sites_.is_current(site) || !site.progress || site.settled) continue;
    const bool finished = site.progress->finished();
    if (!finished && !even_unfinished) continue;
    site.settled = true;
    const std::vector<Trial>& trials = site.progress->trials();
    if (!finished && !budget_.is_spent(false)) {
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
    sites_.choose(index, choice.config);
    const bool beats_any = std::ranges::any_of(
        trials, [](const Trial& trial) { return trial.status == TrialStatus::CutOff; });
    site.reason =
        choice.reason == WinnerReason::Failed && beats_any ? WinnerReason::Fastest : choice.reason;
  }
}

void Tuning::Engine::finish_table() {
  if (budget_.is_newly_spent()) {
    observer_.fallback(
        FallbackReason::Budget, no_site,
        "The tuning reached its limit on passes or time after " + std::to_string(budget_.passes()) +
            " passes; sites without a config shown to be better keep their default.");
  }
  settle_sites(true);
  const bool in_pieces = options_.confirm && std::ranges::any_of(sites_, &TuningSite::in_pieces);
  if ((options_.refine || in_pieces) && !budget_.is_spent(false) &&
      refinement_.start(bounded_ || held_, held_ ? NoisePrior{} : region_noise())) {
    enter(Stage::Refine);
    if (!refinement_.start_next(experiment_)) finish_refine();
  } else {
    start_confirm();
  }
}

void Tuning::Engine::skip_failed_slots() {
  while (experiment_.has_next()) {
    const Assignment& configs = experiment_.next();
    bool failed = false;
    for (SiteIndex i = 0; i < configs.size(); ++i)
      failed = failed || sites_[i].failed.contains(configs[i]);
    if (!failed) return;
    const std::size_t slot = experiment_.next_slot();
    (void)experiment_.take_next();
    experiment_.settle(slot, {std::numeric_limits<double>::infinity(), 0});
  }
}

void Tuning::Engine::finish_refine() {
  refinement_.finish();
  experiment_.clear();
  pending_.clear();
  start_confirm();
}

void Tuning::Engine::start_confirm() {
  if (!confirmation_.start(bounded_)) {
    finish_confirm();
    return;
  }
  enter(Stage::Confirm);
  (void)confirmation_.start_next(experiment_);
}

void Tuning::Engine::finish_confirm() {
  if (confirmation_.event().verdict == ConfirmVerdict::Defaults) tune_anew();
  observer_.confirm(confirmation_.event());
  finish_generation();
}

NoisePrior Tuning::Engine::region_noise() const {
  const NoisePrior seen = baseline_.noise();
  if (seen.degrees > 0) return seen;
  PooledNoise noise;
  for (const TuningSite& site : sites_) {
    if (!sites_.is_current(site) || !site.progress) continue;
    for (const Trial& trial : site.progress->trials()) noise.add(trial.measured());
  }
  return {noise.relative(), std::min<std::size_t>(noise.degrees(), 4)};
}

void Tuning::Engine::finish_generation() {
  pending_.clear();
  experiment_.clear();
  for (SiteIndex index = 0; index < sites_.size(); ++index) {
    TuningSite& site = sites_[index];
    if (!sites_.is_current(site)) continue;
    sites_.choose(index, site.known);
    const bool was_compared = !site.idle_samples.empty() || refinement_.compared(index);
    if (site.spec.objective == Objective::Region && !site.trivial && site.known == 0 &&
        site.reason == WinnerReason::NoSamples && was_compared) {
      site.reason = WinnerReason::Margin;
    }
    observer_.winner({index, site.known, site.cost(site.known, options_.selection),
                      site.cost(0, options_.selection), site.reason,
                      site.reason == WinnerReason::Dropped && budget_.is_spent(true)});
  }
  budget_.clock().end();
  enter(Stage::Finished);
}

}  // namespace contextune
