#pragma once

#include <vector>

#include "core/submission/submission.hpp"

namespace contextune {

/// The time that a search may still cost the program. Everything counts: what the caller spends,
/// blocks that were slower than they would have been as written, and those that may turn out to be.
class SubmissionBudget {
 public:
  SubmissionBudget(double max_slowdown, double grace_seconds)
      : max_slowdown_(max_slowdown), grace_seconds_(grace_seconds) {}

  void spend(double seconds);
  /// Since the first launch.
  void elapsed(double seconds);

  /// A block took so much longer than as written. Blocks of one submission add up: noise cancels,
  /// but what one submission gains pays for no other.
  void expose(const Submission& submission, double seconds);

  /// Kept for a block that is on its way.
  void hold(double seconds);
  void release(double seconds);

  [[nodiscard]] double allowance() const { return max_slowdown_ * elapsed_ + grace_seconds_; }
  /// By the caller, and in blocks that were slower.
  [[nodiscard]] double spent() const;
  /// Whether a block of the submission may run that is feared to cost so much. Where it costs
  /// nothing, whatever was spent is no reason against it.
  [[nodiscard]] bool covers(const Submission& submission, double seconds) const;

 private:
  struct Exposure {
    Submission submission;
    double seconds = 0;
  };
  double max_slowdown_;
  double grace_seconds_;
  double elapsed_ = 0;
  double spent_ = 0;
  double held_ = 0;
  std::vector<Exposure> exposures_;
};

}  // namespace contextune
