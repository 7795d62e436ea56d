#pragma once

#include "intercept/submission/stored_program.hpp"

namespace contextune::intercept {

/// Counts the runs of this program that ended while its found collectives were being compared. Runs
/// that are too short for an answer are not slowed down for ever. Used by one thread at a time.
class UnansweredRuns {
 public:
  explicit UnansweredRuns(ProcessStore& store) : stored_(store) {}

  /// Whether there were so many that the next one leaves collectives as they are. All ranks of a
  /// host read this before any of them says that it compares.
  [[nodiscard]] bool are_enough() const;

  /// This run compares. It counts from now on, however it ends.
  void compares();
  /// There is an answer.
  void answered();

 private:
  void save(int runs) const;
  [[nodiscard]] int count() const;

  StoredProgram stored_;
  bool compares_ = false;
};

}  // namespace contextune::intercept
