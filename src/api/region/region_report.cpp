#include "api/region/region_report.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>

#include "api/last_error.hpp"
#include "api/process.hpp"

namespace contextune::api {
namespace {

using intercept::RegionOutcome;

contextune_region_state state_of(RegionOutcome::State state) {
  switch (state) {
    case RegionOutcome::State::Searching:
      return contextune_region_searching;
    case RegionOutcome::State::Finished:
      return contextune_region_finished;
    case RegionOutcome::State::Stopped:
      return contextune_region_stopped;
  }
  return contextune_region_unknown;
}

contextune_verdict verdict_of(ConfirmVerdict verdict) {
  switch (verdict) {
    case ConfirmVerdict::Kept:
      return contextune_verdict_kept;
    case ConfirmVerdict::Reduced:
      return contextune_verdict_reduced;
    case ConfirmVerdict::Defaults:
      return contextune_verdict_defaults;
    case ConfirmVerdict::Skipped:
      return contextune_verdict_skipped;
  }
  return contextune_verdict_none;
}

contextune_region_report report_of(const RegionOutcome& outcome) {
  contextune_region_report report{};
  report.state = state_of(outcome.state);
  report.before_seconds = report.after_seconds = std::numeric_limits<double>::quiet_NaN();
  report.passes = outcome.passes;
  report.entries = outcome.entries;
  report.tuning_seconds = outcome.tuning_seconds;
  report.sites = outcome.sites;
  report.tuned = outcome.tuned;
  if (!outcome.confirm) return report;
  report.verdict = verdict_of(outcome.confirm->verdict);
  report.is_stored = outcome.is_stored ? 1 : 0;
  report.pairs = outcome.confirm->pairs;
  if (report.pairs == 0) return report;
  report.before_seconds = outcome.confirm->before_seconds;
  report.after_seconds = outcome.confirm->after_seconds;
  report.gain = outcome.confirm->gain;
  report.gain_low = outcome.confirm->bound;
  report.gain_high = outcome.high;
  return report;
}

}  // namespace

int query_region(const char* name, contextune_region_report* report) noexcept {
  if (name == nullptr || report == nullptr || report->size == 0)
    return fail(
        "a region is asked for: give its name, and set `size` of the report to "
        "sizeof(contextune_region_report)");
  try {
    contextune_region_report found{};
    found.before_seconds = found.after_seconds = std::numeric_limits<double>::quiet_NaN();
    if (intercept::Runtime* const now = runtime())
      if (const auto outcome = now->outcome_of(name)) found = report_of(*outcome);
    found.size = report->size;
    std::memcpy(report, &found, std::min(report->size, sizeof found));
    return 0;
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

}  // namespace contextune::api
