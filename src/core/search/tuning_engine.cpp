#include "core/search/tuning_engine.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <contextune/error.hpp>

namespace contextune {
namespace {

/// The same for the same sites in any order.
std::uint64_t situation_of(std::span<const SiteIndex> launched) {
  std::uint64_t sum = 0;
  for (const SiteIndex site : launched) {
    std::uint64_t h = site + 0x9e3779b97f4a7c15U;
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9U;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebU;
    sum += h ^ (h >> 31);
  }
  return sum;
}

const SiteResult* find_result(const PassResult* result, SiteIndex site) {
  if (result == nullptr) return nullptr;
  for (const SiteResult& one : result->sites)
    if (one.site == site) return &one;
  return nullptr;
}

bool usable(const SiteResult& seen, std::uint32_t ran) {
  return seen.status == SiteResult::Status::Measured && seen.config == ran &&
         std::isfinite(seen.seconds) && seen.seconds > 0;
}

/// The region's time; where the clock did not give it, the sum of what its sites took.
double region_seconds(const PassResult& result) {
  if (result.region_seconds > 0 && std::isfinite(result.region_seconds)) {
    return result.region_seconds;
  }
  double sum = 0;
  for (const SiteResult& seen : result.sites) {
    if (!usable(seen, seen.config)) return no_sample;
    sum += seen.seconds * seen.launches;
  }
  return sum > 0 ? sum : no_sample;
}

}  // namespace

Tuning::Engine::Engine(const TuningOptions& options, TuningObserver& observer)
    : options_(options),
      observer_(observer),
      sites_(options_, observer),
      budget_(options_),
      refinement_(options_, sites_),
      confirmation_(options_, observer, sites_) {
  options_.n_repeat = std::max(1, options_.n_repeat);
  options_.n_warmup = std::max(0, options_.n_warmup);
}

SiteIndex Tuning::Engine::add_site(SiteSpec spec) {
  const SiteIndex index = sites_.add(std::move(spec));
  if (index != no_site && sites_[index].ready) take_in(index);
  return index;
}

void Tuning::Engine::site_ready(SiteIndex index, std::span<const std::uint32_t> unusable) {
  if (index >= sites_.size() || sites_[index].ready) return;
  TuningSite& site = sites_[index];
  site.ready = true;
  for (const std::uint32_t config : unusable)
    if (config != 0 && config < site.spec.configs.size())
      site.failed.emplace(config, TrialStatus::LaunchFailed);
  if (site.failed.contains(site.known)) sites_.choose(index, 0);
  // A site that took a build is worth a generation, though the region may have been entered only
  // once.
  site.times_launched = std::max(site.times_launched, launches_to_count);
  take_in(index);
}

PassPlan Tuning::Engine::begin_pass(PassId id, double now, bool bounded) {
  if (pending_.entered()) abandon_open_pass();
  if (budget_.clock().begin(now)) observer_.stage(stage_, sites_.generation());
  budget_.clock().reach(now);
  bounded_ = bounded;
  advance();
  if (pending_.has_waited(options_.result_patience, options_.result_patience_seconds, now)) {
    give_up_waiting();
    advance();
  }
  ++entries_;
  pending_.enter();
  plan_ = sites_.known_configs();
  // A winner that has to be shown again, or survived again, does not run before.
  for (SiteIndex index = 0; stage_ != Stage::Confirm && index < sites_.size(); ++index)
    if (sites_[index].holds_back()) plan_[index] = sites_.winners()[index];
  PassPlan plan{id, stage_, Measure::Nothing, false, Waiting::Nothing, {}};
  if (options_.store_knows && entries_ == 1 && sites_.size() == 0) {
    plan.counted = true;
    return plan;
  }
  PendingPass pass;
  pass.stage = stage_;
  if (stage_ == Stage::Finished) {
    if (std::ranges::any_of(sites_, [](const auto& site) { return !site.ready; }))
      plan.waiting = Waiting::Builds;
  } else if (bounded && budget_.trials_cost_too_much()) {
    plan.waiting = Waiting::Budget;
  } else if (stage_ == Stage::Table) {
    if (!suspects_.empty()) {
      // Whatever one of them does, it is known which it was.
      plan.counted = sites_.size() > 0 && pending_.all().empty();
    } else if (sites_.table_passes() == 0 || table_has_work()) {
      // Who repeats the region can wait: then a site that is through runs its best config next.
      plan.counted = bounded || !a_site_waits();
    }
    if (plan.counted && !suspects_.empty()) {
      pass.suspect = suspects_.front();
      plan_[pass.suspect->site] = pass.suspect->config;
    } else if (plan.counted) {
      plan_trials(pass);
    }
    plan.measure = plan.counted ? Measure::Activity : Measure::Nothing;
  } else if (experiment_.has_next()) {
    plan.counted = true;
    plan.measure = stage_ == Stage::Refine ? refinement_.measure() : Measure::Span;
    pass.slot = experiment_.next_slot();
    pass.experiment = experiment_.number();
    const Assignment& configs = experiment_.take_next();
    std::copy(configs.begin(), configs.end(), plan_.begin());
  }
  if (plan.counted) {
    pending_.stop_waiting();
    pass.id = id;
    pass.configs = plan_;
    pass.measure = plan.measure;
    plan.number = pass.number = budget_.count_pass();
    pending_.open(std::move(pass));
  } else if (plan.waiting == Waiting::Nothing && stage_ != Stage::Finished) {
    plan.waiting = Waiting::Results;
    pending_.wait(now);
  }
  plan.configs = plan_;
  return plan;
}

void Tuning::Engine::plan_trials(PendingPass& pass) {
  for (SiteIndex index = 0; index < sites_.size(); ++index) {
    const TuningSite& site = sites_[index];
    if (!sites_.is_current(site) || !site.progress || site.settled) continue;
    const Step step = site.progress->next();
    if (step.kind != Step::Kind::Run) continue;
    plan_[index] = site.progress->runs(step);
    pass.trials.push_back({index, step, plan_[index], false});
  }
}

void Tuning::Engine::end_pass(PassId id, std::span<const SiteIndex> launched,
                              std::span<const SiteIndex> failed, double now) {
  if (!pending_.entered()) return;
  budget_.clock().reach(now);
  if (!pending_.may_end(id)) return;  // the end of another entry
  PendingPass* const pass = pending_.end_entry();
  if (pass != nullptr && stage_ == Stage::Table) sites_.count_table_pass();
  std::vector<SiteIndex> known;
  for (const SiteIndex index : launched) {
    if (index >= sites_.size()) continue;
    known.push_back(index);
    ++sites_[index].times_launched;
    sites_[index].last_launched = sites_.table_passes();
  }
  const auto among = [](std::span<const SiteIndex> list, SiteIndex index) {
    return std::ranges::find(list, index) != list.end();
  };
  bool any_failed = false;
  for (const SiteIndex index : failed) {
    if (index >= sites_.size()) continue;
    any_failed = true;
    int iteration = 0;
    // A site that came in this entry ran what was known of it.
    const std::uint32_t config = index < plan_.size() ? plan_[index] : sites_.winners()[index];
    if (pass != nullptr) {
      for (PlannedTrial& trial : pass->trials) {
        if (trial.site != index) continue;
        trial.failed = true;
        iteration = trial.step.iteration;
      }
    }
    fail_config(index, config, iteration);
  }
  if (pass == nullptr) {
    advance();
    return;
  }
  std::erase_if(pass->trials, [&](const PlannedTrial& t) { return !among(known, t.site); });
  for (const PlannedTrial& trial : pass->trials) sites_[trial.site].progress->launched(trial.step);
  pass->situation = situation_of(known);
  pass->launched = std::move(known);
  if (any_failed && pass->stage != Stage::Table) {
    if (pass->experiment == experiment_.number()) {
      experiment_.settle(pass->slot, {std::numeric_limits<double>::infinity(), pass->situation});
    }
    pending_.take(id);
  }
  advance();
}

void Tuning::Engine::add_result(const PassResult& result, double now) {
  budget_.clock().reach_at_least(now);
  if (!pending_.has_ended(result.pass)) return;
  resolve(pending_.take(result.pass), result.lost ? nullptr : &result);
  advance();
}

void Tuning::Engine::resolve(const PendingPass& pass, const PassResult* result) {
  if (result != nullptr && !result->throttled) {
    const double seconds = region_seconds(*result);
    if (std::isfinite(seconds)) {
      std::vector<std::uint32_t> tried;
      for (SiteIndex i = 0; i < pass.configs.size(); ++i)
        if (sites_.is_current(sites_[i]) && !sites_[i].trivial) tried.push_back(pass.configs[i]);
      baseline_.add(pass.measure, pass.situation, tried, seconds);
      budget_.charge(baseline_.excess(pass.measure, pass.situation, seconds));
    }
  }
  if (pass.stage == Stage::Table) {
    if (pass.suspect) settle_suspect(pass);
    settle_trials(pass, result);
  } else {
    settle_experiment(pass, result);
  }
}

void Tuning::Engine::settle_trials(const PendingPass& pass, const PassResult* result) {
  const bool counts = result != nullptr && !result->throttled;
  for (const PlannedTrial& trial : pass.trials) {
    const SiteResult* seen = find_result(result, trial.site);
    TuningSite& site = sites_[trial.site];
    if (seen != nullptr && seen->has_failed() && !trial.failed)
      fail_as_seen(*seen, trial.runs, trial.step.iteration, pass.number);
    if (seen != nullptr && seen->config == trial.runs && took_too_long(*seen))
      time_out(trial.site, trial.runs, trial.step.iteration, took(*seen));
    const bool tried = trial.runs == trial.step.config && !trial.failed;
    const bool measured = seen != nullptr && tried && usable(*seen, trial.runs);
    if (measured && seen->launches > 0) site.launches = seen->launches;
    site.in_pieces = site.in_pieces || (measured && seen->in_pieces);
    site.progress->result(trial.step, measured && counts ? seen->seconds : no_sample);
    report_trial(trial, measured ? seen : nullptr, result, pass.number, counts);
  }
  if (!counts) return;
  for (const SiteIndex index : pass.launched) {
    TuningSite& site = sites_[index];
    if (site.progress || !sites_.is_current(site)) continue;
    const SiteResult* seen = find_result(result, index);
    if (seen == nullptr || !usable(*seen, site.known)) continue;
    site.launches = std::max(1U, seen->launches);
    if (site.idle_samples.size() < 64) site.idle_samples.push_back(seen->seconds);
  }
}

void Tuning::Engine::report_trial(const PlannedTrial& trial, const SiteResult* seen,
                                  const PassResult* result, std::uint64_t number, bool counts) {
  TrialEvent event;
  event.pass = number;
  event.site = trial.site;
  event.config = trial.step.config;
  event.iteration = trial.step.iteration;
  event.seconds = seen != nullptr ? seen->seconds : no_sample;
  event.launches = seen != nullptr ? seen->launches : 0;
  const Trial& state = sites_[trial.site].progress->trials()[trial.step.config];
  if (seen != nullptr) {
    event.status = TrialStatus::Measured;
  } else if (state.given_up()) {
    event.status = state.status;
  } else {
    event.status = TrialStatus::NoSample;
  }
  event.throttled = result != nullptr && !counts;
  event.sm_clock_hz = result != nullptr ? result->sm_clock_hz : 0;
  observer_.trial(event);
}

void Tuning::Engine::settle_experiment(const PendingPass& pass, const PassResult* result) {
  if (pass.experiment != experiment_.number()) return;
  const bool counts = result != nullptr && !result->throttled;
  double seconds = counts ? region_seconds(*result) : no_sample;
  // A site whose config ranks could not be told ran as before: that is no sample of the plan.
  for (std::size_t i = 0; result != nullptr && i < result->sites.size(); ++i) {
    const SiteResult& seen = result->sites[i];
    if (seen.site < pass.configs.size() && seen.config != pass.configs[seen.site])
      seconds = no_sample;
  }
  // Where others launched it, only the result tells that it could not be launched.
  for (std::size_t i = 0; result != nullptr && i < result->sites.size(); ++i) {
    const SiteResult& seen = result->sites[i];
    if (!seen.has_failed() || seen.site >= pass.configs.size()) continue;
    fail_as_seen(seen, pass.configs[seen.site], 0, pass.number);
    seconds = std::numeric_limits<double>::infinity();
  }
  for (std::size_t i = 0; result != nullptr && i < result->sites.size(); ++i) {
    const SiteResult& seen = result->sites[i];
    const bool as_planned =
        seen.site < pass.configs.size() && seen.config == pass.configs[seen.site];
    if (!as_planned || seen.config == 0 || !took_too_long(seen)) continue;
    time_out(seen.site, seen.config, 0, took(seen));
    seconds = std::numeric_limits<double>::infinity();
  }
  const bool is_default =
      std::ranges::all_of(pass.configs, [](std::uint32_t config) { return config == 0; });
  if (seconds > options_.trial_timeout && !is_default)
    seconds = std::numeric_limits<double>::infinity();
  experiment_.settle(pass.slot, {seconds, pass.situation});
}

void Tuning::Engine::abandon_open_pass() {
  PendingPass* const pass = pending_.end_entry();
  if (pass == nullptr) return;
  // Nothing is known of what it launched: no site has used a step of its schedule.
  pass->trials.clear();
  if (stage_ == Stage::Table) sites_.count_table_pass();
  resolve(pending_.take(pass->id), nullptr);
}

bool Tuning::Engine::finished() const {
  return stage_ == Stage::Finished && std::ranges::none_of(sites_, [this](const TuningSite& site) {
           return !site.trivial && !site.generation && (!site.ready || wants_generation(site));
         });
}

}  // namespace contextune
