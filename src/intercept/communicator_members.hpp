#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/coordinator.hpp"

namespace contextune::intercept {

/// Which ranks of the job an NCCL communicator consists of. NCCL tells nobody: those that ask for
/// the same one are its ranks, as DomainPlanner finds them. Any thread.
class CommunicatorMembers {
 public:
  struct Members {
    std::vector<std::uint32_t> ranks;  ///< of the job, ascending; empty: `why` says why
    std::string why;                   ///< a clause
  };

  /// Waits for all of its ranks to ask, at most so long, once a communicator: what was found, or
  /// was not, holds for good.
  /// @param id    the same on all its ranks, and no other's
  /// @param ranks that it has, one a process
  [[nodiscard]] Members find(Coordinator& coordinator, std::uint64_t id, std::uint32_t ranks,
                             double seconds);

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, Members> known_;
};

}  // namespace contextune::intercept
