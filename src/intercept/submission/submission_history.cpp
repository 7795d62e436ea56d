#include "intercept/submission/submission_history.hpp"

#include <utility>

namespace contextune::intercept {

const StoredSubmission& SubmissionHistory::open() {
  stored_ = std::make_unique<const StoredSubmission>(store_);
  return *stored_;
}

bool SubmissionHistory::save(SubmissionState state, SubmittedKernels::Images images) {
  if (stored_ == nullptr) return false;
  bool forgets = false;
  auto& [read, unread] = images;
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
  stored_->save(state);
  saved_ = std::move(state);
  return forgets;
}

void SubmissionHistory::save_length(double run_seconds) {
  if (!saved_ || !saved_->lacks_images) return;
  saved_->run_seconds = run_seconds;
  stored_->save(*saved_);
}

void SubmissionHistory::wait() const {
  if (stored_ != nullptr) stored_->wait();
}

}  // namespace contextune::intercept
