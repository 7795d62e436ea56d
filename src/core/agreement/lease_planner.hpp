#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/agreement/batch.hpp"

namespace contextune {

/// "rank 3".
[[nodiscard]] std::string name_of_rank(std::uint32_t rank);

struct SecondsOfRank {
  std::uint32_t rank = 0;
  double seconds = 0;
};

/// Turns what a batch plans for collective sites into leases, and says where that cannot be done.
/// A function of what ranks have said. Not thread-safe.
class LeasePlanner {
 public:
  /// Takes note of where ranks stand, before the batch that answers them is planned.
  /// @param ranks their numbers in the job, for messages; as many as reports
  void hear(std::span<const std::uint32_t> ranks, std::span<const BatchReport> reports,
            std::uint64_t first_entry);

  /// The batch was given to all ranks.
  void committed(const Batch& batch);

  /// Why the decisions of a site cannot be told a config at the same number on all ranks; a clause.
  /// Empty: they can.
  [[nodiscard]] std::string out_of_step(SharedIndex site) const;

  /// How long a collective took: in each of its communicators whoever came last did not wait in
  /// it, and the slowest communicator counts.
  /// @param by_rank not empty, ranks ascending
  [[nodiscard]] double cost(SharedIndex site, std::span<const SecondsOfRank> by_rank) const;

  struct OutOfStep {
    SharedIndex site = 0;
    std::string why;
  };
  /// Fills in the leases for those sites. A site that cannot be leased is planned with the config
  /// that already holds.
  [[nodiscard]] std::vector<OutOfStep> lease(std::span<const SharedIndex> sites, Batch& batch);

 private:
  struct Member {
    std::uint32_t rank = 0;
    BatchReport::Standing standing;
    std::uint64_t start = 0;  ///< number of its decision with which the next batch begins
  };
  using StreamKey = std::pair<SharedIndex, std::uint64_t>;  ///< site and communicator

  /// Streams that came after the winner, of a communicator made since, are told it as well.
  void lease_to_new_streams(SharedIndex site, std::uint32_t held, Batch& batch) const;
  [[nodiscard]] std::string out_of_step(const StreamKey& key,
                                        std::span<const Member> members) const;

  std::map<StreamKey, std::vector<Member>> streams_;
  std::map<StreamKey, std::uint64_t> last_first_;  ///< where the last lease begins
  std::map<SharedIndex, std::uint32_t> held_;  ///< what holds when no lease is running, if not 0
};

}  // namespace contextune
