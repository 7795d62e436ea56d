#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/submission/submission.hpp"
#include "core/submission/submission_state.hpp"

namespace contextune {

/// The step that has to be measured next.
struct SubmissionStep {
  enum class Kind {
    Screen,
    Compare,
    NumberKernels,  ///< those that may be left out of chaining are not known
    Blocked,        ///< what is left could not be measured in this run
    Settled
  };
  Kind kind = Kind::Blocked;
  std::vector<Submission> screened;  ///< most promising first
  std::size_t ratios = 0;            ///< that each of them needs in all
  Submission candidate;              ///< Compare
  Submission against;
  std::size_t pairs = 0;  ///< that the comparison needs in all until it is judged next

  bool operator==(const SubmissionStep&) const = default;
};

struct SubmissionJudgement {
  SubmissionStep step;
  SubmissionVerdict verdict;
};

/// A submission this many times slower than as written is not run a second time.
inline constexpr double far_slower = 2.5;

/// Where a gathered submission is this many times slower than as written, none is run any more. The
/// host waits for something that a held launch does.
inline constexpr double gathers_in_vain = 4;

/// Judges by what is known which submission is kept, and what is measured next. Pure.
/// @param unmeasurable in this run
[[nodiscard]] SubmissionJudgement judge_submissions(const SubmissionState& state,
                                                    const SubmissionChoices& choices,
                                                    const SubmissionLimits& limits,
                                                    std::span<const Submission> unmeasurable = {});

/// Whether the winner is faster than as written now as well: its pairs say so, or more are asked
/// for. Kind::Settled: its winner is the same, or as written where that was not shown. Pure.
[[nodiscard]] SubmissionJudgement judge_winner_again(const SubmissionState& state,
                                                     const SubmissionLimits& limits,
                                                     std::span<const Submission> unmeasurable = {});

/// The verdict of all measurements where a run ends without an answer: ratios of the screen and
/// pairs count alike. Programs that use the GPU for a few milliseconds come to no comparison.
/// Empty: no submission is shown to be faster.
/// @param least measurements of the submission
[[nodiscard]] std::optional<SubmissionVerdict> verdict_of_all(const SubmissionState& state,
                                                              const SubmissionLimits& limits,
                                                              std::size_t least);

/// The middle of its ratios to as written; NaN: not screened.
[[nodiscard]] double screened_ratio(const SubmissionState& state, const Submission& submission);

}  // namespace contextune
