// How far a search has come, for the log.
#include <algorithm>

#include "intercept/tuner/search.hpp"
#include "log/events.hpp"

namespace contextune::intercept {

SearchFigures Search::figures() const {
  const std::lock_guard lock(mutex_);
  return figures_locked();
}

SearchFigures Search::figures_locked() const {
  SearchFigures figures;
  figures.passes = tuning_->progress().passes;
  figures.entries = tuning_->progress().entries;
  figures.tuning_seconds = tuning_->progress().seconds;
  figures.stage = end_.is_stopped() ? Stage::Finished : tuning_->progress().stage;
  figures.sites = sites_.size();
  figures.tuned = static_cast<std::uint64_t>(
      std::count_if(sites_.begin(), sites_.end(), [](const Site* s) { return s->settled() != 0; }));
  return figures;
}

RegionOutcome Search::outcome() const {
  const std::lock_guard lock(mutex_);
  const SearchFigures figures = figures_locked();
  RegionOutcome outcome;
  if (end_.is_finished()) outcome.state = RegionOutcome::State::Finished;
  if (end_.is_stopped()) outcome.state = RegionOutcome::State::Stopped;
  if (const auto confirmed = reports_.results().confirmed()) {
    outcome.confirm = confirmed->confirm;
    outcome.high = 2 * confirmed->confirm.gain - confirmed->confirm.bound;
    outcome.is_stored = confirmed->is_stored;
  }
  outcome.passes = figures.passes;
  outcome.entries = figures.entries;
  outcome.tuning_seconds = figures.tuning_seconds;
  outcome.sites = figures.sites;
  outcome.tuned = figures.tuned;
  return outcome;
}

void Search::write_summary() {
  const std::lock_guard lock(mutex_);
  if (!end_.is_stopped()) tuning_->explain_unfinished();
  summarise();
}

void Search::summarise_new() {
  SearchFigures figures = figures_locked();
  if (summarised_) figures.entries = summarised_->entries;
  if (figures != summarised_) summarise();
}

void Search::summarise() {
  const SearchFigures figures = figures_locked();
  reports_.log().end_runs();
  if (figures == summarised_) return;
  summarised_ = figures;
  log::SummaryEvent event;
  event.region = region_;
  event.passes = figures.passes;
  event.entries = figures.entries;
  event.tuning_seconds = figures.tuning_seconds;
  event.stage = to_string(figures.stage);
  event.sites = figures.sites;
  event.tuned = figures.tuned;
  event.simulated = log_.simulated();
  log::write_summary(log_.lines(), event);
}

}  // namespace contextune::intercept
