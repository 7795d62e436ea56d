#pragma once

#include <cstdint>
#include <vector>

#include "core/submission/submission.hpp"
#include "intercept/graphs/chained_graphs.hpp"
#include "intercept/submit/spliced_loads.hpp"
#include "intercept/submit/submitter.hpp"

namespace contextune::intercept {

/// The way in which launches, graphs and the code of kernels reach the driver now.
///
/// Serialised by the caller, but for what the three parts allow; nothing throws unless it says so.
class SubmissionInUse {
 public:
  SubmissionInUse(Submitter& submitter, ChainedGraphs& graphs, SplicedLoads& loads)
      : submitter_(submitter), graphs_(graphs), loads_(loads) {}

  /// From the next launch on.
  /// @param stays no other way will come after it
  void use(const Submission& submission, bool stays) noexcept;
  [[nodiscard]] const Submission& submission() const noexcept { return submission_; }

  /// The winner of an earlier run stays: kernels that are not chained in it run as the program has
  /// them. Throws.
  /// @param kernels that its `ordinary` speaks of
  void leave_losers(const std::vector<std::uint64_t>& kernels);

  /// Launches so far that did not go out as they should have.
  [[nodiscard]] std::uint64_t disturbed() const noexcept;
  /// That loads, graphs and batches have taken so far.
  [[nodiscard]] double seconds_taken() const noexcept;

  [[nodiscard]] Submitter& submitter() const noexcept { return submitter_; }
  [[nodiscard]] ChainedGraphs& graphs() const noexcept { return graphs_; }
  [[nodiscard]] SplicedLoads& loads() const noexcept { return loads_; }

 private:
  Submitter& submitter_;
  ChainedGraphs& graphs_;
  SplicedLoads& loads_;
  Submission submission_;
};

}  // namespace contextune::intercept
