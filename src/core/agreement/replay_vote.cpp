#include "core/agreement/replay_vote.hpp"

#include <map>

#include "core/agreement/lease_planner.hpp"
#include "core/value/byte_stream.hpp"

namespace contextune {
namespace {

constexpr std::uint32_t most_voted_communicators = 65536;

}  // namespace

Payload encode(const ReplayVote& vote) {
  Payload bytes;
  ByteWriter to(bytes);
  to.number(static_cast<std::uint8_t>(vote.can));
  to.number(static_cast<std::uint8_t>(vote.may_later));
  to.text(vote.why);
  to.number(static_cast<std::uint32_t>(vote.communicators.size()));
  for (const ReplayVote::Communicator& one : vote.communicators) {
    to.number(one.id);
    to.number(one.ranks);
    to.number(one.calls);
  }
  return bytes;
}

std::optional<ReplayVote> decode_vote(const Payload& bytes) {
  ByteReader from(bytes);
  ReplayVote vote;
  vote.can = from.number<std::uint8_t>() != 0;
  vote.may_later = from.number<std::uint8_t>() != 0;
  vote.why = from.text();
  const auto count = from.number<std::uint32_t>();
  if (count > most_voted_communicators) return std::nullopt;
  for (std::uint32_t i = 0; i < count && !from.failed(); ++i) {
    ReplayVote::Communicator& one = vote.communicators.emplace_back();
    one.id = from.number<std::uint64_t>();
    one.ranks = from.number<std::uint32_t>();
    one.calls = from.number<std::uint64_t>();
  }
  if (from.failed() || from.left() != 0) return std::nullopt;
  return vote;
}

ReplayVerdict verdict_of(std::span<const ReplayVote> votes, std::span<const std::uint32_t> ranks) {
  ReplayVerdict verdict;
  bool all_may_later = true;
  for (std::size_t i = 0; i < votes.size(); ++i) {
    if (votes[i].can) continue;
    all_may_later = all_may_later && votes[i].may_later;
    // Who cannot ever says more than who cannot now.
    if (verdict.why.empty() || !votes[i].may_later)
      verdict.why =
          "The region cannot be replayed on " + name_of_rank(ranks[i]) + ": " + votes[i].why;
  }
  if (!verdict.why.empty()) {
    verdict.may_later = all_may_later;
    return verdict;
  }
  struct Seen {
    std::uint32_t ranks = 0;
    std::uint64_t calls = 0;
    std::uint32_t first = 0;  ///< rank that named it
    std::uint32_t num_votes = 0;
  };
  verdict.may_later = true;  // a rank may have been in the midst of something
  std::map<std::uint64_t, Seen> communicators;
  for (std::size_t i = 0; i < votes.size(); ++i) {
    for (const ReplayVote::Communicator& one : votes[i].communicators) {
      const auto [at, is_new] =
          communicators.try_emplace(one.id, Seen{one.ranks, one.calls, ranks[i], 0});
      ++at->second.num_votes;
      if (at->second.calls == one.calls && at->second.ranks == one.ranks) continue;
      verdict.why = "The region's collectives are others on " + name_of_rank(at->second.first) +
                    " than on " + name_of_rank(ranks[i]) + ", so they cannot be repeated together.";
      return verdict;
    }
  }
  for (const auto& [id, seen] : communicators) {
    if (seen.num_votes == seen.ranks) continue;
    verdict.why = "The region has collectives of " + std::to_string(seen.ranks) + " ranks, " +
                  std::to_string(seen.num_votes) + " of which have them in this region.";
    return verdict;
  }
  verdict.may_later = false;
  verdict.replays = true;
  verdict.together = !communicators.empty();
  return verdict;
}

}  // namespace contextune
