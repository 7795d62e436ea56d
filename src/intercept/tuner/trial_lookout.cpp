#include "intercept/tuner/trial_lookout.hpp"

#include <algorithm>
#include <exception>
#include <memory>

#include "intercept/host/clock.hpp"
#include "intercept/program/idle_wait.hpp"
#include "intercept/tuner/search_trials.hpp"

namespace contextune::intercept {

void TrialLookout::begin(LaunchRegion& region) noexcept {
  if (watched_.load(std::memory_order_relaxed) || services_.captures.any()) return;
  try {
    const auto seconds = search_.trials().overdue_in(trial_timeout_, now_seconds());
    if (!seconds) return;
    CUcontext context = nullptr;
    if (services_.driver.cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr) return;
    context_.store(context);
    if (watched_.exchange(true)) return;
    const std::shared_ptr<Watched> self(region.shared_from_this(), this);
    if (!TrialWatch::get().watch(self, *seconds)) watched_.store(false);
  } catch (const std::exception&) {
    watched_.store(false);  // no memory
  }
}

double TrialLookout::look() noexcept {
  constexpr double longest_look_seconds = 1;
  // First: a trial that begins now is looked after anew.
  watched_.store(false);
  try {
    const auto seconds = search_.trials().overdue_in(trial_timeout_, now_seconds());
    CUcontext const context = context_.load();
    if (!seconds || context == nullptr || services_.stopped.load() || watched_.exchange(true))
      return 0;
    if (*seconds > 0) return *seconds;
    if (services_.captures.any()) return trial_timeout_;
    const double most = std::min(trial_timeout_, longest_look_seconds);
    if (!end_within(services_.driver, context, most, services_.captures)) search_.trials().hang();
  } catch (const std::exception&) {
    // No memory, or no thread to wait with: later, then.
  }
  return trial_timeout_;
}

}  // namespace contextune::intercept
