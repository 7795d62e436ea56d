#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/submission/submission.hpp"

namespace contextune {

/// The submissions that may be tried in a region.
struct SubmissionChoices {
  bool may_chain = false;
  std::vector<std::uint32_t> may_gather;  ///< sizes, ascending; empty: none
  /// Tells apart which kernels may be chained and gathered by the user's options; 0: by none.
  std::uint64_t rules = 0;

  [[nodiscard]] bool allow(const Submission& submission) const;
  bool operator==(const SubmissionChoices&) const = default;
};

/// Kernels that are left out of chaining by themselves; more are chained with all others.
inline constexpr std::size_t most_numbered_kernels = 16;

/// The most images that a later run reads alone; of more it reads all.
inline constexpr std::size_t most_needed_images = 256;

struct SubmissionLimits {
  double max_slowdown = 0.10;    ///< share of the time since the first launch
  double grace_seconds = 0.050;  ///< that a process may be slowed down by beside it
  int min_pairs = 4;
  int max_pairs = 32;
  /// Seconds that the pairs which show a gain take at least, unless the gain is large.
  double min_seconds = 2e-3;
  /// The share of the region's time that a kept submission saves at least.
  double margin = 0.01;
  int max_runs = 4;  ///< the run after these uses what is known
  /// Blocks that do not count when a process first gathers in a new way: graphs are being built.
  int warm_up_blocks = 1;
  /// A run has room for few blocks: one way is compared with as written, and no other.
  bool few_blocks = false;
  /// How long a block is going to take, as the caller expects; 0: nothing but what is as written
  /// runs until the first result.
  double block_seconds = 0;
};

/// A submission in the screen.
struct ScreenedSubmission {
  Submission submission;
  std::vector<double> ratios;  ///< seconds an entry, over those of launches as written near by
  bool operator==(const ScreenedSubmission&) const = default;
};

/// A comparison of two submissions by blocks that follow each other. A gain is the logarithm of
/// `against`'s seconds an entry over the candidate's, so that work that changes cancels.
struct SubmissionPairs {
  Submission candidate;
  Submission against;
  std::vector<double> against_first;    ///< gains of pairs that began with `against`
  std::vector<double> candidate_first;  ///< gains of pairs that began with the candidate
  bool operator==(const SubmissionPairs&) const = default;
};

struct SubmissionVerdict {
  bool settled = false;  ///< nothing is left to find out
  /// Shown to be faster than as written, or as written.
  Submission winner;
  double gain = 0;  ///< share of the time as written that the winner saves
  double low = 0;   ///< its one-sided 95 % bound
  double high = 0;  ///< as far above the gain, in logarithms
  int pairs = 0;    ///< that show it
  std::string why;  ///< one clause, for the log
  bool operator==(const SubmissionVerdict&) const = default;
};

/// All that is known about a region's submissions, over runs: plain, for the store.
struct SubmissionState {
  int runs = 0;               ///< that have searched, or doubted the winner
  SubmissionChoices choices;  ///< of the last run
  /// Hashes of the names of kernels whose launches were chained, the most frequent ones first;
  /// absent: not numbered yet.
  std::optional<std::vector<std::uint64_t>> kernels;
  std::vector<ScreenedSubmission> screened;
  std::vector<SubmissionPairs> pairs;
  SubmissionVerdict verdict;
  /// The winner was shown under other conditions, and pairs of now are to show it again.
  bool doubted = false;
  double block_seconds = 0;  ///< of a block as written; 0: not known
  /// Seconds of the last run, from its first launch on. 0: not known.
  double run_seconds = 0;
  /// Keys of the images whose kernels were launched where launches may be chained; empty: not
  /// known.
  std::vector<std::uint64_t> images;
  /// Some of them were not read, so that launches of their kernels were not chained.
  bool lacks_images = false;
  bool operator==(const SubmissionState&) const = default;
};

/// The shares of the time as written that a way saves, by each pair that compared the two.
[[nodiscard]] std::vector<double> gains_of_pairs(const SubmissionState& state,
                                                 const Submission& way);

/// Forgets what was found out of chaining, and leaves nothing settled. The winner is not chained.
void forget_chaining(SubmissionState& state);

}  // namespace contextune
