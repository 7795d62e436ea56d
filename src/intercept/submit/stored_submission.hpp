#pragma once

#include <optional>
#include <string>

#include <contextune/key.hpp>

#include "core/submission_state.hpp"
#include "intercept/process_store.hpp"

namespace contextune::intercept {

/// What earlier runs of this very program, with these arguments, found out about how its launches
/// reach the driver. Any thread.
class StoredSubmission {
 public:
  static constexpr const char* region = "auto";
  static constexpr const char* site = "launches";

  explicit StoredSubmission(ProcessStore& store);

  /// Absent: nothing that counts here.
  /// @param same_software whether it was found under the software that is here now
  [[nodiscard]] std::optional<SubmissionState> load(bool& same_software) const;

  /// Whether more may be found out.
  [[nodiscard]] bool tunes() const noexcept { return store_.tunes(); }

  /// Writes behind the scenes.
  void save(const SubmissionState& state) const;

  /// Waits until that has been written, but not for long.
  void wait() const;

 private:
  ProcessStore& store_;
  Key key_;            ///< program and arguments
  std::string build_;  ///< of the program's file; empty: not known, and nothing is kept
};

}  // namespace contextune::intercept
