#include "core/submission/submission_stored.hpp"

#include <limits>
#include <utility>

#include "core/submission/submission_text.hpp"

namespace contextune {
namespace {

constexpr double not_timed = std::numeric_limits<double>::quiet_NaN();

void add_samples(std::vector<StoredTrial>& trials, const Submission& of, std::size_t samples) {
  const Config config = config_of(of);
  for (StoredTrial& trial : trials)
    if (trial.config == config) {
      trial.samples += static_cast<std::uint32_t>(samples);
      return;
    }
  if (samples > 0)
    trials.push_back({config, TrialStatus::Measured, static_cast<std::uint32_t>(samples), not_timed,
                      not_timed, not_timed});
}

WinnerReason reason_of(const SubmissionVerdict& verdict) {
  if (!verdict.settled) return WinnerReason::SoFar;
  return verdict.winner.is_as_written() ? WinnerReason::Margin : WinnerReason::Region;
}

}  // namespace

Config config_of(const Submission& submission) {
  Config config{{"chained", submission.chained}, {"gathered", std::int64_t{submission.gathered}}};
  if (submission.ordinary != 0) config.set("ordinary", std::int64_t{submission.ordinary});
  return config;
}

StoredSite stored_submission(const SubmissionState& state, std::string name, Key key,
                             std::string code) {
  StoredSite site;
  site.name = std::move(name);
  site.key = std::move(key);
  site.code = std::move(code);
  site.trials = {{config_of({}), TrialStatus::Measured, 0, not_timed, not_timed, not_timed}};
  for (const ScreenedSubmission& one : state.screened)
    add_samples(site.trials, one.submission, one.ratios.size());
  for (const SubmissionPairs& one : state.pairs)
    for (const Submission& compared : {one.candidate, one.against})
      add_samples(site.trials, compared, one.against_first.size() + one.candidate_first.size());
  site.winner = config_of(state.verdict.winner);
  site.reason = reason_of(state.verdict);
  site.seconds = site.default_seconds = not_timed;
  site.progress = text_of(state);
  return site;
}

std::optional<SubmissionState> submission_of(const StoredSite& site) {
  std::optional<SubmissionState> state = submission_state_of(site.progress);
  if (state && config_of(state->verdict.winner) != site.winner) state.reset();
  return state;
}

}  // namespace contextune
