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
  [[nodiscard]] std::optional<SubmissionState> load() const;

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
