#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/submission/submission_state.hpp"
#include "intercept/submission/stored_program.hpp"
#include "intercept/submit/submitted_kernels.hpp"

namespace contextune::intercept {

/// The findings of earlier runs about how the program's launches reach the driver, and those of
/// this run that the next one has to know. Serialised by the caller, but for `hung`.
class StoredSubmission {
 public:
  static constexpr const char* region = StoredProgram::region;
  static constexpr const char* site = "launches";

  /// @param max_runs the run after so many uses what is known
  StoredSubmission(ProcessStore& store, int max_runs) : store_(store), max_runs_(max_runs) {}

  /// Finds out which program runs. Only `save`, `save_length` and `wait` may come before. Throws.
  void open() { program_.emplace(store_); }

  /// Absent: nothing that counts here.
  /// @param same_software whether it was found under the software that is here now
  [[nodiscard]] std::optional<SubmissionState> load(bool& same_software) const;

  /// Whether a run did not come to its end while launches went out in another way than as written.
  /// That is blamed from now on.
  [[nodiscard]] bool was_fatal() const;

  /// The GPU may be at work in these ways, and nothing else that is tried.
  void set_in_flight(const std::vector<Submission>& submissions) const;
  /// The GPU does not get through with them. Any thread.
  void hung() const { (void)store_.journal().hung(); }

  /// Whether more may be found out.
  [[nodiscard]] bool tunes() const noexcept { return store_.tunes(); }

  /// Saves the findings of this run behind the scenes, if there are earlier ones to add to. Throws.
  /// @param images of kernels that were launched
  /// @return whether what was found out of chaining is forgotten, since only a part was chained
  bool save(SubmissionState state, SubmittedKernels::Images images);
  /// The run lasts so long since its first launch. The next run may read as much as a run of this
  /// length allows, not one that ended as this one was settled. Throws.
  void save_length(double run_seconds);
  /// Waits until that has been written, but not for long.
  void wait() const;

 private:
  /// All ways other than as written are one to the journal.
  [[nodiscard]] store::TrialJournal::Trial trial_of(const std::string& ways) const;
  void write(const SubmissionState& state) const;

  ProcessStore& store_;
  const int max_runs_;
  std::optional<StoredProgram> program_;  ///< absent: nothing is kept
  std::optional<SubmissionState> saved_;  ///< as the next run finds it
};

}  // namespace contextune::intercept
