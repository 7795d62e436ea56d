#include "intercept/submission/unanswered_runs.hpp"

#include <charconv>
#include <limits>
#include <string>
#include <utility>

#include "core/submission/submission_state.hpp"

namespace contextune::intercept {
namespace {

constexpr const char* collectives_site = "collectives";
constexpr std::string_view runs_word = "runs=";

}  // namespace

int UnansweredRuns::count() const {
  const StoredSite* const stored = stored_.find(collectives_site);
  if (stored == nullptr || !stored->progress.starts_with(runs_word)) return 0;
  const std::string_view text = std::string_view(stored->progress).substr(runs_word.size());
  int runs = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), runs);
  return read.ec == std::errc() && runs > 0 ? runs : 0;
}

bool UnansweredRuns::are_enough() const {
  return count() >= SubmissionLimits{}.max_runs;
}

void UnansweredRuns::compares() {
  if (!std::exchange(compares_, true)) save(count() + 1);
}

void UnansweredRuns::answered() {
  if (std::exchange(compares_, false)) save(0);
}

void UnansweredRuns::save(int runs) const {
  if (!stored_.store().tunes()) return;
  StoredSite site;
  site.name = collectives_site;
  site.key = stored_.key();
  constexpr double not_timed = std::numeric_limits<double>::quiet_NaN();
  site.trials = {{Config{}, TrialStatus::Measured, 0, not_timed, not_timed, not_timed}};
  site.reason = WinnerReason::SoFar;
  site.seconds = site.default_seconds = not_timed;
  site.progress = std::string(runs_word) + std::to_string(runs);
  stored_.save(std::move(site));
}

}  // namespace contextune::intercept
