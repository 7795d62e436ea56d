#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/coordinator.hpp"

namespace contextune {

/// What a rank says to be told with whom it is to be tuned in a region.
struct DomainReport {
  struct Communicator {
    std::uint64_t id = 0;     ///< the same on all its ranks, and no other's
    std::uint32_t ranks = 0;  ///< of it
    std::uint32_t here = 0;   ///< of them, in this process
  };
  std::uint64_t region = 0;
  /// Those that it used in the region so far. None: it belongs to the other ranks of the job that
  /// enter the region and use none.
  std::vector<Communicator> used;
  std::uint32_t num_ranks = 0;  ///< of the job
  bool waits_no_longer = false;
  bool leaves = false;  ///< it is not tuned in the region any more: nobody waits for it
};

[[nodiscard]] Payload encode(const DomainReport& report);
/// @return the ranks to be tuned together, ascending; empty: ask again. Absent: it cannot be read
[[nodiscard]] std::optional<std::vector<std::uint32_t>> decode_domain(const Payload& answer);

/// Finds out on rank 0 which ranks are to be tuned together in a region: those that are connected
/// by communicators which they use in it. A domain is final as soon as all ranks of all its
/// communicators have said so or left, or one of its ranks waits no longer; whoever comes later is
/// not in it, and a communicator that is not in one domain as a whole is tuned by none.
///
/// Each question is one rank's alone, so nobody is kept waiting. Deterministic; not thread-safe.
class DomainPlanner {
 public:
  /// A Coordinator's decider.
  [[nodiscard]] Payload decide(const Topic& topic, std::span<const Payload> said, std::string& why);

 private:
  using Ranks = std::vector<std::uint32_t>;
  struct Region {
    std::map<std::uint32_t, DomainReport> reports;  ///< of ranks that are in no domain
    std::map<std::uint32_t, DomainReport> left;
    std::vector<Ranks> domains;
  };

  [[nodiscard]] static Ranks connected(const Region& region, std::uint32_t rank);
  [[nodiscard]] static bool is_whole(const Region& region, const Ranks& ranks);

  std::map<std::uint64_t, Region> regions_;
};

}  // namespace contextune
