#pragma once

#include <cstdint>
#include <optional>

#include "core/submission/submission.hpp"
#include "intercept/submission/submission_events.hpp"

namespace contextune::intercept {

/// Whole entries of one period, whose launches go out in one way, between two events.
struct SubmissionBlock {
  std::optional<std::uint64_t> number;  ///< absent: it only shows how long blocks are
  Submission submission;
  SubmissionEvents::Event begin;
  SubmissionEvents::Event end;
  std::uint32_t period = 0;
  std::uint64_t began_ns = 0;
  std::uint64_t entries = 0;
  std::uint64_t launches = 0;
  std::uint64_t graphs = 0;     ///< launches of them
  std::uint64_t disturbed = 0;  ///< SubmissionInUse::disturbed() when it began
  std::uint64_t attempts = 0;   ///< ChainedGraphs::Totals::attempts then
};

}  // namespace contextune::intercept
