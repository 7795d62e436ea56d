#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/coordination/coordinator.hpp"

namespace contextune {

/// A rank asks with whom it is tuned in a region, or only says where it is.
struct DomainReport {
  /// Begins and Ends say that the rank repeats the region's body from now on, or no longer. They
  /// have no answer.
  enum class Kind : std::uint8_t { Asks, Begins, Ends };
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
  /// The rank waits in the region, whose body it repeats, and comes to no other one meanwhile.
  bool attends = false;
  Kind kind = Kind::Asks;
};

[[nodiscard]] Payload encode(const DomainReport& report);
/// @return the ranks to be tuned together, ascending; empty: ask again. Absent: it cannot be read
[[nodiscard]] std::optional<std::vector<std::uint32_t>> decode_domain(const Payload& answer);

/// Finds out on rank 0 which ranks are to be tuned together in a region: those that are connected
/// by communicators which they use in it. A domain is final as soon as all ranks of all its
/// communicators have said so or left, or one of its ranks waits no longer. A rank that comes later
/// is not in it, and a communicator that is not in one domain as a whole is tuned by none. A body
/// is repeated by all ranks of the communicators that it uses, or by none: whoever asks where one
/// has left is refused, and has left as well.
///
/// Where no communicator is used, a domain is also final once all other ranks of the job are
/// elsewhere. Such a rank waits in another region, or repeats a body that no rank waiting here has
/// come to. The same program leads all ranks through the same regions: where one of those has been
/// already, the other will come on.
///
/// Each question is one rank's alone, so nobody is kept waiting. Deterministic; not thread-safe.
class DomainPlanner {
 public:
  /// A Coordinator's decider.
  [[nodiscard]] Payload decide(const Topic& topic, std::span<const Payload> said, std::string& why);

 private:
  using Ranks = std::vector<std::uint32_t>;
  /// Who has told of a communicator.
  struct Sharers {
    std::set<std::uint32_t> ranks;  ///< among the reports
    std::set<std::uint32_t> left;
    std::uint64_t here = 0;  ///< ranks of it in the processes that use it or have left
  };
  struct Region {
    std::map<std::uint32_t, DomainReport> reports;  ///< of ranks that are in no domain
    std::map<std::uint32_t, DomainReport> left;
    std::map<std::uint64_t, Sharers> sharers;  ///< by communicator
    std::set<std::uint32_t> use_none;          ///< ranks among the reports
    std::vector<RankSet> domains;
    std::map<std::uint32_t, std::size_t> domain_of;  ///< by rank: its place among the domains
    std::set<std::uint32_t> came;                    ///< ranks that have begun to repeat its body
    std::size_t num_repeating = 0;                   ///< of these, that repeat it now
  };

  /// Counts what a report says, which is about to be kept.
  static void count(Region& region, const DomainReport& report);
  static void forget(Region& region, std::uint32_t rank);
  static void leave(Region& region, std::uint32_t rank, DomainReport report);
  /// A rank that has left and uses a communicator of these.
  [[nodiscard]] static std::optional<std::uint32_t> one_that_left(const Region& region,
                                                                  const Ranks& ranks);
  /// False: the rank's domain is not whole, as little shows already.
  [[nodiscard]] bool may_be_whole(std::uint64_t region, std::uint32_t rank) const;

  void note_place(std::uint32_t rank, const DomainReport& report);
  /// Whether the rank repeats a body elsewhere, as those see it that wait in the region.
  [[nodiscard]] bool is_elsewhere(std::uint32_t rank, std::uint64_t region,
                                  const Ranks& waiting) const;
  /// Which ranks of the job come to the region, or come to none for now.
  [[nodiscard]] std::set<std::uint32_t> accounted_for(std::uint64_t region,
                                                      const Ranks& waiting) const;
  [[nodiscard]] bool is_whole(std::uint64_t region, const Ranks& ranks) const;
  static void settle(Region& region, const Ranks& ranks);
  /// The ranks that wait for nobody any more, by region, where no communicator is used.
  [[nodiscard]] std::map<std::uint64_t, Ranks> whole_where_none_is_used() const;
  [[nodiscard]] static Ranks connected(const Region& region, std::uint32_t rank);

  std::map<std::uint64_t, Region> regions_;
  std::map<std::uint32_t, std::set<std::uint64_t>> places_;  ///< by rank: regions that it repeats
};

}  // namespace contextune
