#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/submission/submission_state.hpp"
#include "intercept/submission/stored_program.hpp"

namespace contextune::intercept {

/// The findings of earlier runs about how the program's launches reach the driver. Any thread.
class StoredSubmission {
 public:
  static constexpr const char* region = StoredProgram::region;
  static constexpr const char* site = "launches";

  explicit StoredSubmission(ProcessStore& store) : stored_(store) {}

  /// Absent: nothing that counts here.
  /// @param same_software whether it was found under the software that is here now
  [[nodiscard]] std::optional<SubmissionState> load(bool& same_software) const;

  /// Whether a run did not come to its end while launches went out in another way than as written.
  /// That is blamed from now on.
  [[nodiscard]] bool was_fatal() const;

  /// The GPU may be at work in these ways, and nothing else that is tried.
  void set_in_flight(const std::vector<Submission>& submissions) const;
  /// The GPU does not get through with them.
  void hung() const { (void)stored_.store().journal().hung(); }

  /// Whether more may be found out.
  [[nodiscard]] bool tunes() const noexcept { return stored_.store().tunes(); }

  /// Writes behind the scenes.
  void save(const SubmissionState& state) const;

  /// Waits until that has been written, but not for long.
  void wait() const;

 private:
  /// All ways other than as written are one to the journal.
  [[nodiscard]] store::TrialJournal::Trial trial_of(const std::string& ways) const;

  StoredProgram stored_;
};

}  // namespace contextune::intercept
