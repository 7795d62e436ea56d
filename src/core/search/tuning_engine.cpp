#include "core/search/tuning_engine.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <contextune/error.hpp>

namespace contextune {
namespace {

/// Number of an entry that only shows which sites there are.

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
    : options_(options), observer_(observer) {
  options_.n_repeat = std::max(1, options_.n_repeat);
  options_.n_warmup = std::max(0, options_.n_warmup);
}

SiteIndex Tuning::Engine::add_site(SiteSpec spec) {
  if (spec.configs.empty()) {
    throw Error("site '" + spec.name + "' has no configs; number 0 is its default");
  }
  if (spec.pinned && *spec.pinned >= spec.configs.size()) {
    throw Error("site '" + spec.name + "' is pinned to config " + std::to_string(*spec.pinned) +
                " and has " + std::to_string(spec.configs.size()));
  }
  if (spec.stored && spec.stored->config >= spec.configs.size()) spec.stored.reset();
  if (sites_.size() >= options_.max_sites) {
    if (!said_too_many_) {
      said_too_many_ = true;
      observer_.fallback(FallbackReason::TooManySites, no_site,
                         "The region has more than " + std::to_string(options_.max_sites) +
                             " sites; '" + spec.name + "' and all later ones run their default.");
    }
    return no_site;
  }
  const auto index = static_cast<SiteIndex>(sites_.size());
  TuningSite& site = sites_.emplace_back();
  site.spec = std::move(spec);
  site.ready = site.spec.ready;
  site.trivial = site.spec.pinned.has_value() || site.spec.configs.size() == 1;
  site.known = site.spec.pinned.value_or(0);
  if (site.trivial) {
    site.reason = !site.spec.pinned   ? WinnerReason::Only
                  : site.spec.by_size ? WinnerReason::Nearest
                                      : WinnerReason::Pinned;
    site.spec.stored.reset();
  }
  winners_.push_back(site.known);
  if (site.ready) take_in(index);
  return index;
}

void Tuning::Engine::site_ready(SiteIndex index, std::span<const std::uint32_t> unusable) {
  if (index >= sites_.size() || sites_[index].ready) return;
  TuningSite& site = sites_[index];
  site.ready = true;
  for (const std::uint32_t config : unusable)
    if (config != 0 && config < site.spec.configs.size()) site.failed.insert(config);
  if (site.failed.contains(site.known)) site.known = winners_[index] = 0;
  // A site that took a build is worth a generation, though the region may have been entered only
  // once.
  site.times_launched = std::max(site.times_launched, launches_to_count);
  take_in(index);
}

std::vector<std::uint32_t> Tuning::Engine::known_configs() const {
  std::vector<std::uint32_t> configs;
  configs.reserve(sites_.size());
  for (const TuningSite& site : sites_) configs.push_back(site.known);
  return configs;
}

PassPlan Tuning::Engine::begin_pass(PassId id, double now, bool bounded) {
  if (entered_) abandon_open_pass();
  if (std::isnan(first_now_)) {
    first_now_ = now;
    observer_.stage(stage_, generation_);
  }
  last_now_ = now;
  bounded_ = bounded;
  advance();
  if (waited_ >= options_.result_patience &&
      now - waiting_since_ >= options_.result_patience_seconds && !pending_.empty()) {
    give_up_waiting();
    advance();
  }
  ++entries_;
  entered_ = true;
  plan_ = known_configs();
  // A winner that has to be shown again, or survived again, does not run before.
  for (SiteIndex index = 0; stage_ != Stage::Confirm && index < sites_.size(); ++index)
    if (sites_[index].holds_back()) plan_[index] = winners_[index];
  PassPlan plan{id, stage_, Measure::Nothing, false, Waiting::Nothing, {}};
  if (options_.store_knows && entries_ == 1 && sites_.empty()) {
    plan.counted = true;
    return plan;
  }
  PendingPass pass;
  pass.stage = stage_;
  if (stage_ == Stage::Finished) {
    if (std::any_of(sites_.begin(), sites_.end(), [](const auto& site) { return !site.ready; }))
      plan.waiting = Waiting::Builds;
  } else if (bounded && trials_cost_too_much()) {
    plan.waiting = Waiting::Budget;
  } else if (stage_ == Stage::Table) {
    if (!suspects_.empty()) {
      // Whatever one of them does, it is known which it was.
      plan.counted = !sites_.empty() && pending_.empty();
    } else if (generation_passes_ == 0 || table_has_work()) {
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
    plan.measure = stage_ == Stage::Refine ? refine_measure_ : Measure::Span;
    pass.slot = experiment_.next_slot();
    pass.experiment = experiment_.number();
    const Assignment& configs = experiment_.take_next();
    std::copy(configs.begin(), configs.end(), plan_.begin());
  }
  if (plan.counted) {
    waited_ = 0;
    pass.configs = plan_;
    pass.measure = plan.measure;
    plan.number = pass.number = passes_++;
    open_ = id;
    pending_.emplace(id, std::move(pass));
  } else if (plan.waiting == Waiting::Nothing && stage_ != Stage::Finished) {
    plan.waiting = Waiting::Results;
    if (waited_++ == 0) waiting_since_ = now;
  }
  plan.configs = plan_;
  return plan;
}

void Tuning::Engine::plan_trials(PendingPass& pass) {
  for (SiteIndex index = 0; index < sites_.size(); ++index) {
    const TuningSite& site = sites_[index];
    if (site.generation != generation_ || !site.progress || site.settled) continue;
    const Step step = site.progress->next();
    if (step.kind != Step::Kind::Run) continue;
    plan_[index] = site.progress->runs(step);
    pass.trials.push_back({index, step, plan_[index], false});
  }
}

void Tuning::Engine::end_pass(PassId id, std::span<const SiteIndex> launched,
                              std::span<const SiteIndex> failed, double now) {
  if (!entered_) return;
  last_now_ = now;
  PendingPass* pass = open_ == id ? &pending_.at(id) : nullptr;
  if (open_ && pass == nullptr) return;  // the end of another entry
  entered_ = false;
  open_.reset();
  if (pass != nullptr) {
    pass->ended = true;
    if (stage_ == Stage::Table) ++generation_passes_;
  }
  std::vector<SiteIndex> known;
  for (const SiteIndex index : launched) {
    if (index >= sites_.size()) continue;
    known.push_back(index);
    ++sites_[index].times_launched;
    sites_[index].last_launched = generation_passes_;
  }
  const auto among = [](std::span<const SiteIndex> list, SiteIndex index) {
    return std::find(list.begin(), list.end(), index) != list.end();
  };
  bool any_failed = false;
  for (const SiteIndex index : failed) {
    if (index >= sites_.size()) continue;
    any_failed = true;
    int iteration = 0;
    // A site that came in this entry ran what was known of it.
    const std::uint32_t config = index < plan_.size() ? plan_[index] : winners_[index];
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
    pending_.erase(id);
  }
  advance();
}

void Tuning::Engine::add_result(const PassResult& result, double now) {
  last_now_ = std::max(last_now_, now);
  const auto at = pending_.find(result.pass);
  if (at == pending_.end() || !at->second.ended) return;
  resolve(at, result.lost ? nullptr : &result);
  advance();
}

void Tuning::Engine::resolve(std::map<PassId, PendingPass>::iterator at, const PassResult* result) {
  const PendingPass pass = std::move(at->second);
  pending_.erase(at);
  if (result != nullptr && !result->throttled) {
    const double seconds = region_seconds(*result);
    if (std::isfinite(seconds)) {
      std::vector<std::uint32_t> tried;
      for (std::size_t i = 0; i < pass.configs.size(); ++i)
        if (sites_[i].generation == generation_ && !sites_[i].trivial)
          tried.push_back(pass.configs[i]);
      baseline_.add(pass.measure, pass.situation, tried, seconds);
      trials_cost_ += baseline_.excess(pass.measure, pass.situation, seconds);
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
    if (site.progress || site.generation != generation_) continue;
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
  const bool is_default = std::all_of(pass.configs.begin(), pass.configs.end(),
                                      [](std::uint32_t config) { return config == 0; });
  if (seconds > options_.trial_timeout && !is_default)
    seconds = std::numeric_limits<double>::infinity();
  experiment_.settle(pass.slot, {seconds, pass.situation});
}

void Tuning::Engine::abandon_open_pass() {
  entered_ = false;
  if (!open_) return;
  const auto at = pending_.find(*open_);
  open_.reset();
  if (at == pending_.end()) return;
  // Nothing is known of what it launched: no site has used a step of its schedule.
  at->second.trials.clear();
  at->second.ended = true;
  if (stage_ == Stage::Table) ++generation_passes_;
  resolve(at, nullptr);
}

bool Tuning::Engine::finished() const {
  return stage_ == Stage::Finished &&
         std::none_of(sites_.begin(), sites_.end(), [this](const TuningSite& site) {
           return !site.trivial && !site.generation && (!site.ready || wants_generation(site));
         });
}

double Tuning::Engine::tuning_seconds() const {
  if (std::isnan(first_now_)) return 0;
  return (stage_ == Stage::Finished ? finished_at_ : last_now_) - first_now_;
}

}  // namespace contextune
