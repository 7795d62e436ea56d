#include "intercept/submission/stored_submission.hpp"

#include <utility>
#include <vector>

#include "core/submission/submission_stored.hpp"

namespace contextune::intercept {
namespace {

constexpr double longest_save_seconds = 1;

}  // namespace

std::optional<SubmissionState> StoredSubmission::load(bool& same_software) const {
  const StoredSite* const stored = program_->find(site);
  if (stored == nullptr) return std::nullopt;
  same_software = stored->same_software;
  return submission_of(*stored);
}

store::TrialJournal::Trial StoredSubmission::trial_of(const std::string& ways) const {
  Key key = program_->key();
  key.add("build", program_->build());  // another one may do better
  auto trial = store::TrialJournal::trial_of(region, site, key.to_string(), {});
  trial.text += ways;
  return trial;
}

bool StoredSubmission::was_fatal() const {
  const store::TriedConfig tried = trial_of({}).config;
  const auto suspicion = store_.journal().suspicion(tried);
  if (suspicion == store::TrialJournal::Suspicion::Suspect) store_.journal().blame(tried);
  return suspicion != store::TrialJournal::Suspicion::None;
}

void StoredSubmission::set_in_flight(const std::vector<Submission>& submissions) const {
  std::string ways;
  for (const Submission& one : submissions) ways += (ways.empty() ? "" : " or ") + text_of(one);
  std::vector<store::TrialJournal::Trial> trials;
  if (!ways.empty()) trials.push_back(trial_of(ways));
  store_.journal().set(this, std::move(trials));
}

bool StoredSubmission::save(SubmissionState state, SubmittedKernels::Images images) {
  if (!program_) return false;
  bool forgets = false;
  std::vector<std::uint64_t>& read = images.read;
  const std::vector<std::uint64_t>& unread = images.unread;
  if (!read.empty() || !unread.empty()) {
    // After the last run, winners are used as they were shown.
    state.lacks_images = !unread.empty() && state.runs < max_runs_;
    if (state.lacks_images) read.insert(read.end(), unread.begin(), unread.end());
    if (read.size() > most_needed_images) read.clear();
    state.images = std::move(read);
    // A part that was chained in vain says little of the whole.
    forgets = state.lacks_images && !state.verdict.winner.chained;
    if (forgets) forget_chaining(state);
  }
  write(state);
  saved_ = std::move(state);
  return forgets;
}

void StoredSubmission::save_length(double run_seconds) {
  if (!saved_ || !saved_->lacks_images) return;
  saved_->run_seconds = run_seconds;
  write(*saved_);
}

void StoredSubmission::write(const SubmissionState& state) const {
  program_->save(stored_submission(state, site, program_->key(), {}));
}

void StoredSubmission::wait() const {
  if (program_) store_.wait(longest_save_seconds);
}

}  // namespace contextune::intercept
