#pragma once

#include <memory>
#include <optional>

#include "core/submission/submission_state.hpp"
#include "intercept/submission/stored_submission.hpp"
#include "intercept/submit/submitted_kernels.hpp"

namespace contextune::intercept {

/// The findings of earlier runs, and those of this one that the next run has to know. Serialised by
/// the caller.
class SubmissionHistory {
 public:
  /// @param max_runs the run after so many uses what is known
  SubmissionHistory(ProcessStore& store, int max_runs) : store_(store), max_runs_(max_runs) {}

  /// The findings of earlier runs. Throws.
  const StoredSubmission& open();

  /// Saves the findings of this run, if there are earlier ones to add to. Throws.
  /// @param images of kernels that were launched
  /// @return whether what was found out of chaining is forgotten, since only a part was chained
  bool save(SubmissionState state, SubmittedKernels::Images images);
  /// The run lasts so long since its first launch. The next run may read as much as a run of this
  /// length allows, not one that ended as this one was settled. Throws.
  void save_length(double run_seconds);
  /// Until that is written, but not for long.
  void wait() const;

  [[nodiscard]] int max_runs() const noexcept { return max_runs_; }

 private:
  ProcessStore& store_;
  const int max_runs_;
  std::unique_ptr<const StoredSubmission> stored_;  ///< null: nothing is kept
  std::optional<SubmissionState> saved_;            ///< as the next run finds it
};

}  // namespace contextune::intercept
