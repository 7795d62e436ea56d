#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>

#include "intercept/submission/submission_events.hpp"
#include "intercept/submission/submission_in_use.hpp"
#include "intercept/submission/submissions_in_flight.hpp"

namespace contextune::intercept {

/// The time until the GPU is known to survive the way of launching that an earlier run found: it
/// counts as in flight until then. Serialised by the caller but for `is_on`.
class WinnerProbation {
 public:
  WinnerProbation(SubmissionEvents& events, SubmissionInUse& in_use, SubmissionsInFlight& in_flight)
      : events_(events), in_use_(in_use), in_flight_(in_flight) {}

  void begin() noexcept { is_on_ = true; }
  [[nodiscard]] bool is_on() const noexcept { return is_on_.load(std::memory_order_relaxed); }

  /// A launch, or one of a graph, goes to the stream. Throws.
  void see(CUstream stream);
  /// Perhaps the GPU is through with enough of them. Throws.
  void check();
  /// Before a context is destroyed: the event in it is lost, and another one will be recorded.
  void forget_event() noexcept { survived_.reset(); }

 private:
  std::atomic<bool> is_on_{false};
  SubmissionEvents& events_;
  SubmissionInUse& in_use_;
  SubmissionsInFlight& in_flight_;
  SubmissionEvents::Event survived_;  ///< behind the launches that have to be
  std::uint64_t launches_ = 0;
};

}  // namespace contextune::intercept
