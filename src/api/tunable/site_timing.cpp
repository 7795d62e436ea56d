#include "api/tunable/site_timing.hpp"

#include <exception>

#include "core/trials/statistics.hpp"
#include "intercept/tuner/search.hpp"
#include "intercept/tuner/search_results.hpp"
#include "intercept/tuner/search_sites.hpp"

namespace contextune::api {
namespace {

contextune_timing_state state_of(TrialStatus status) {
  switch (status) {
    case TrialStatus::LaunchFailed:
    case TrialStatus::TimedOut:
    case TrialStatus::Crashed:
    case TrialStatus::TooMuchMemory:
      return contextune_timing_failed;
    case TrialStatus::WrongResult:
      return contextune_timing_wrong;
    case TrialStatus::NotCompared:
      return contextune_timing_unsupported;
    case TrialStatus::Untried:
    case TrialStatus::Measured:
    case TrialStatus::NoSample:
    case TrialStatus::CutOff:
    case TrialStatus::Known:
      break;
  }
  return contextune_timing_missing;
}

}  // namespace

void add_known(contextune_timing& timing, const intercept::Site* site,
               std::uint32_t config) noexcept {
  if (site == nullptr || site->search == nullptr || timing.state != contextune_timing_missing)
    return;
  try {
    const intercept::Measurements here = site->search->sites().measurements(*site, config);
    timing.state = state_of(here.status);
    if (timing.state != contextune_timing_missing) return;
    if (!here.seconds.empty()) {
      timing.samples = here.seconds.size();
      timing.seconds = median(here.seconds);
      timing.state = contextune_timing_measured;
    } else if (const auto stored = site->search->sites().stored_trial(*site, config)) {
      timing.samples = stored->samples;
      timing.seconds = stored->seconds;
      timing.state = contextune_timing_measured;
    }
  } catch (const std::exception&) {
    // No memory to look at them.
  }
}

}  // namespace contextune::api
