#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/agreement/domain_planner.hpp"
#include "core/coordination/coordinator.hpp"

namespace contextune::intercept {

/// The answer of DomainPlanner.
struct Domain {
  std::vector<std::uint32_t> ranks;  ///< of the job, ascending
  std::string why;                   ///< there are none, a clause; empty as well: not all have come
  bool is_cut_short = false;         ///< the time was over: others may have been on their way
};

/// Asks DomainPlanner again and again who has to do with this rank, until that is final, or for so
/// many seconds. A rank that uses communicators then leaves; else those count that are there.
/// @param topic of this rank's questions alone; the number of the next one is left in it
[[nodiscard]] Domain ask_for_domain(Coordinator& coordinator, Topic& topic, DomainReport report,
                                    double seconds);

/// Seconds that rank 0 has for the last of these answers.
inline constexpr double domain_answer_seconds = 0.25;

}  // namespace contextune::intercept
