#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/coordination/coordinator.hpp"

namespace contextune::intercept {

/// Which ranks of the job an NCCL communicator consists of. NCCL tells nobody: those that ask for
/// the same one are its ranks, as DomainPlanner finds them. Any thread.
class CommunicatorMembers {
 public:
  struct Members {
    std::vector<std::uint32_t> ranks;  ///< of the job, ascending; empty: `why` says why
    std::string why;                   ///< a clause
  };

  /// This rank is one of the communicator's: to those that ask it is as if it had asked as well.
  /// Waits for nobody.
  void announce(Coordinator& coordinator, std::uint64_t id, std::uint32_t ranks);

  /// Waits for all of its ranks to ask, at most so long, once a communicator: what was found, or
  /// was not, holds for good.
  /// @param id    the same on all its ranks, and no other's
  /// @param ranks that it has, one a process
  [[nodiscard]] Members find(Coordinator& coordinator, std::uint64_t id, std::uint32_t ranks,
                             double seconds);

 private:
  /// Each has a lock of its own: other threads may wait for the ranks of other communicators, which
  /// wait for these.
  struct Known {
    std::mutex mutex;
    std::optional<Members> members;
    std::uint64_t question = 0;  ///< that is asked next
  };
  [[nodiscard]] static Members ask_until(Coordinator& coordinator, std::uint64_t id,
                                         std::uint32_t ranks, double seconds,
                                         std::uint64_t& question);
  [[nodiscard]] Known& known(std::uint64_t id);

  std::mutex mutex_;
  std::map<std::uint64_t, Known> known_;  ///< none is ever taken out
};

}  // namespace contextune::intercept
