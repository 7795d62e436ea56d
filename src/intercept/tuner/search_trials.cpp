#include "intercept/tuner/search_trials.hpp"

#include "intercept/host/clock.hpp"

namespace contextune::intercept {

void SearchTrials::check() {
  const std::lock_guard lock(search_.mutex_);
  // Until it has finished, entries look.
  if (!search_.probation_.probe().is_awaited() || !search_.finished()) return;
  search_.hear(search_.passes_.take_entries(), 0);
  search_.note_in_flight();
}

std::optional<double> SearchTrials::overdue_in(double timeout, double now) const {
  const std::unique_lock lock(search_.mutex_, std::try_to_lock);
  if (!lock) return timeout;  // it is at work
  return search_.probation_.overdue_in(timeout, now);
}

void SearchTrials::hang() {
  const std::unique_lock lock(search_.mutex_, std::try_to_lock);
  if (!lock) return;
  search_.drain(false, now_seconds());  // what has come meanwhile
  if (!search_.probation_.is_any_since()) return;
  search_.probation_.forget_since();
  search_.keep_so_far(now_seconds(), true);
  search_.log_.fallback(
      FallbackReason::TrialTimeout, search_.region_, {},
      "The GPU is not through with a trial after trial_timeout, and only the end of its "
      "process ends a kernel. " +
          search_.probation_.hung());
}

}  // namespace contextune::intercept
