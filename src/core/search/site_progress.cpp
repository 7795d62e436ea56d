#include "core/search/site_progress.hpp"

#include <cmath>
#include <limits>

#include "core/trials/statistics.hpp"

namespace contextune {
namespace {

/// A first launch may be slow for reasons of its own, so warm-up passes must be worse by as much
/// again before they alone condemn a config.
constexpr double warmup_allowance = 3;

}  // namespace

SiteProgress::SiteProgress(const ScheduleShape& shape, ScheduleKind schedule, double cutoff)
    : shape_(shape),
      schedule_(schedule_of(schedule)),
      cutoff_(cutoff),
      trials_(shape.num_configs),
      levels_(shape.num_configs, no_sample) {
  for (Trial& trial : trials_) {
    trial.samples.assign(static_cast<std::size_t>(shape.n_repeat), no_sample);
    trial.warmup.assign(static_cast<std::size_t>(shape.n_warmup), no_sample);
  }
  // A single config leaves nothing to find out.
  scheduled_ = shape.num_configs > 1;
}

Step SiteProgress::next() const {
  if (!scheduled_) return retry_step();
  const Step step = schedule_.step(p_, shape_, trials_, owed_ == 0);
  if (step.kind != Step::Kind::Finished) return step;
  return owed_ > 0 ? Step{Step::Kind::Wait, 0, 0} : Step{};
}

Step SiteProgress::retry_step() const {
  const auto each = static_cast<std::uint64_t>(shape_.n_warmup + shape_.n_repeat);
  const std::uint64_t index = retry_p_ / each;
  if (index < retries_.size()) {
    return {Step::Kind::Run, retries_[index], static_cast<int>(retry_p_ % each) - shape_.n_warmup};
  }
  return owed_ > 0 ? Step{Step::Kind::Wait, 0, 0} : Step{};
}

std::uint32_t SiteProgress::runs(const Step& step) const {
  return trials_[step.config].given_up() ? 0 : step.config;
}

void SiteProgress::launched(const Step& step) {
  ++(scheduled_ ? p_ : retry_p_);
  ++owed_;
  (void)step;
}

void SiteProgress::fail(std::uint32_t config, int iteration, TrialStatus why) {
  Trial& trial = trials_[config];
  if (trial.given_up()) return;
  trial.status = why;
  trial.given_up_at = iteration;
}

void SiteProgress::exclude(std::uint32_t config, TrialStatus why) {
  fail(config, -shape_.n_warmup, why);
  trials_[config].excluded = true;
}

void SiteProgress::result(const Step& step, double seconds) {
  if (owed_ > 0) --owed_;
  Trial& trial = trials_[step.config];
  if (!std::isnan(seconds) && !trial.given_up()) {
    if (step.counts()) {
      trial.samples[static_cast<std::size_t>(step.iteration)] = seconds;
      trial.status = TrialStatus::Measured;
      levels_[step.config] = median(trial.measured());
    } else {
      trial.warmup[static_cast<std::size_t>(step.iteration + shape_.n_warmup)] = seconds;
    }
    cut_off_if_hopeless(step.config, step.iteration);
  }
  if (owed_ == 0) queue_retries();
}

void SiteProgress::queue_retries() {
  const bool through = scheduled_
                           ? schedule_.step(p_, shape_, trials_, true).kind == Step::Kind::Finished
                           : retry_step().kind == Step::Kind::Finished;
  if (!through) return;
  if (!scheduled_) {
    for (Trial& trial : trials_)
      if (trial.status == TrialStatus::Untried) trial.status = TrialStatus::NoSample;
    return;
  }
  scheduled_ = false;
  for (std::uint32_t i = 0; i < trials_.size(); ++i)
    if (trials_[i].status == TrialStatus::Untried) retries_.push_back(i);
}

void SiteProgress::cut_off_if_hopeless(std::uint32_t config, int iteration) {
  if (cutoff_ <= 0 || config == 0) return;
  double best = std::numeric_limits<double>::infinity();
  for (std::uint32_t i = 0; i < trials_.size(); ++i)
    if (i != config && !trials_[i].given_up() && levels_[i] < best) best = levels_[i];
  Trial& trial = trials_[config];
  std::vector<double> seen = trial.measured();
  const double factor = seen.empty() ? cutoff_ * warmup_allowance : cutoff_;
  for (const double sample : trial.warmup)
    if (!std::isnan(sample)) seen.push_back(sample);
  if (!(minimum(seen) > factor * best)) return;
  trial.status = TrialStatus::CutOff;
  trial.given_up_at = iteration;
}

}  // namespace contextune
