#include "intercept/submission/stored_submission.hpp"

#include <utility>
#include <vector>

#include "core/submission/submission_stored.hpp"

namespace contextune::intercept {
namespace {

constexpr double longest_save_seconds = 1;

}  // namespace

std::optional<SubmissionState> StoredSubmission::load(bool& same_software) const {
  const StoredSite* const stored = stored_.find(site);
  if (stored == nullptr) return std::nullopt;
  same_software = stored->same_software;
  return submission_of(*stored);
}

store::TrialJournal::Trial StoredSubmission::trial_of(const std::string& ways) const {
  Key key = stored_.key();
  key.add("build", stored_.build());  // another one may do better
  auto trial = store::TrialJournal::trial_of(region, site, key.to_string(), {});
  trial.text += ways;
  return trial;
}

bool StoredSubmission::was_fatal() const {
  const store::TriedConfig tried = trial_of({}).config;
  const auto suspicion = stored_.store().journal().suspicion(tried);
  if (suspicion == store::TrialJournal::Suspicion::Suspect) stored_.store().journal().blame(tried);
  return suspicion != store::TrialJournal::Suspicion::None;
}

void StoredSubmission::set_in_flight(const std::vector<Submission>& submissions) const {
  std::string ways;
  for (const Submission& one : submissions) ways += (ways.empty() ? "" : " or ") + text_of(one);
  std::vector<store::TrialJournal::Trial> trials;
  if (!ways.empty()) trials.push_back(trial_of(ways));
  stored_.store().journal().set(this, std::move(trials));
}

void StoredSubmission::save(const SubmissionState& state) const {
  stored_.save(stored_submission(state, site, stored_.key(), {}));
}

void StoredSubmission::wait() const {
  stored_.store().wait(longest_save_seconds);
}

}  // namespace contextune::intercept
