#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/coordination/coordinator.hpp"

namespace contextune {

/// A rank's vote on a visit of a region that it would repeat: whether it can, and which collectives
/// it would repeat. Each of these waits for all ranks of its communicator.
struct ReplayVote {
  struct Communicator {
    std::uint64_t id = 0;     ///< the same on all its ranks, and no other's
    std::uint32_t ranks = 0;  ///< of it
    std::uint64_t calls = 0;  ///< hash of the collectives, in order
  };
  bool can = false;
  bool may_later = false;  ///< if it cannot: another visit may go better
  std::string why;         ///< if it cannot: a sentence
  std::vector<Communicator> communicators;
};

[[nodiscard]] Payload encode(const ReplayVote& vote);
[[nodiscard]] std::optional<ReplayVote> decode_vote(const Payload& bytes);

/// The verdict that follows from all votes, the same on every rank.
struct ReplayVerdict {
  bool replays = false;
  bool together = false;   ///< it does, and there are collectives: ranks repeat it run by run
  bool may_later = false;  ///< it does not, and all would try another visit
  std::string why;         ///< it does not: a sentence
};

/// @param votes by rank of the domain
[[nodiscard]] ReplayVerdict verdict_of(std::span<const ReplayVote> votes,
                                       std::span<const std::uint32_t> ranks);

}  // namespace contextune
