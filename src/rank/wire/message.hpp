#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/coordination/coordinator.hpp"
#include "rank/wire/frame.hpp"

namespace contextune::rank {

/// The types of messages between ranks about a topic. "Hub" is the coordinating side of rank 0,
/// "member" the side that every rank has.
enum class MessageType : std::uint16_t {
  Heartbeat = 1,  ///< both ways: nothing but that its sender is there
  Listening,      ///< member to hub: where this rank can be asked
  Peers,          ///< hub to member: where each rank of the topic can be asked
  Say,            ///< member to hub: its part, the kind, and within how many seconds
  Withdraw,       ///< member to hub: it has not voted, and never will
  Propose,        ///< hub to member: the decision, to be voted on
  Vote,           ///< member to hub: it will do as the verdict says
  Verdict,        ///< hub to member: committed or aborted
  Acknowledge,    ///< member to hub: it has the verdict
  Done,           ///< hub to member: all have it, nobody will ask any more
  Ask,            ///< member to member that lost the hub: what do you know?
  Tell,           ///< the answer
  Inquire,        ///< hub to member that has not spoken in time: what keeps it?
  Occupied,  ///< the answer, if there is one; and hub to the others: how long they have to wait
  Relay,     ///< hub to member: where the relay listens that passes its messages on
  Attach,    ///< member to hub: from now on it hears of large topics through its relay
  Detach,    ///< member to hub: it does so no more, nor will it again
};
inline constexpr auto last_message_type = MessageType::Detach;

/// The knowledge of a rank about a topic that another rank asks about.
enum class Knowledge : std::uint8_t {
  Waiting,  ///< has voted, and expects to hear the verdict
  Lost,     ///< has voted, and has lost the hub, too
  Committed,
  Aborted,  ///< or has not voted, and now never will
};

/// All fields of all types; which ones travel depends on the type.
struct Message {
  MessageType type = MessageType::Heartbeat;
  Topic topic;  ///< all that have one
  /// Between hub and relay: of which ranks of the topic it is, or for which. Empty: it is of, or
  /// for, the rank at the other end of the connection.
  RankSet ranks;
  std::uint32_t kind = 0;      ///< Say
  double seconds = 0;          ///< Say, Occupied; Propose: until all had spoken
  Payload payload;             ///< Say: the part; Propose: the decision
  std::vector<Payload> parts;  ///< Say of several ranks, in place of `payload`: of each
  std::vector<double> waits;   ///< Propose to several ranks, in place of `seconds`: of each
  bool committed = false;      ///< Verdict
  std::string why;             ///< Withdraw, Occupied; Verdict, Tell, if aborted
  std::uint32_t culprit = Agreement::no_rank;  ///< Verdict, Tell
  Knowledge knowledge = Knowledge::Waiting;    ///< Tell
  std::uint64_t epoch = 0;  ///< Peers, Ask: drawn by the hub, so that one started anew is another
  /// Listening, Relay: one; Peers: of each of the topic's ranks
  std::vector<std::string> addresses;
};

/// A message, and the rank that it is for; where it names several, any of those.
struct Outgoing {
  std::uint32_t to = 0;
  Message message;
};
using Outbox = std::vector<Outgoing>;

/// More topics are open at once only if something is broken, or if there are thousands of ranks.
inline constexpr std::size_t max_open_topics = 4096;

/// Longer reasons are cut: they are for readers.
inline constexpr std::size_t max_why_bytes = 1024;

/// Whether a relay may pass messages of that type on: from members to the hub, or the other way.
/// All others go between a member and the hub themselves.
[[nodiscard]] bool is_relayed_up(MessageType type) noexcept;
[[nodiscard]] bool is_relayed_down(MessageType type) noexcept;

/// The message as one of its ranks sent it, or gets it.
/// @param place of the rank in `message.ranks`
[[nodiscard]] Message one_of(const Message& message, std::size_t place);
/// The message for, or of, those ranks of it.
[[nodiscard]] Message some_of(const Message& message, const RankSet& ranks);

/// The type and the body of a frame.
[[nodiscard]] std::uint16_t frame_type_of(const Message& message) noexcept;
[[nodiscard]] std::vector<std::byte> encode(const Message& message);

/// The message in a frame, or what is wrong with it. Whatever is in it fits: the type exists, the
/// ranks of the topic ascend, are all below `num_ranks`, and nothing is left over.
/// @param error a sentence; untouched if all is well
[[nodiscard]] bool decode(const Frame& frame, std::uint32_t num_ranks, Message& message,
                          std::string& error);

/// A reason, not longer than a message holds.
[[nodiscard]] std::string short_why(std::string why);

/// "rank 3".
[[nodiscard]] std::string name_of(std::uint32_t rank);

[[nodiscard]] bool has_rank(const Topic& topic, std::uint32_t rank) noexcept;

/// Why nothing can be agreed on under this topic; empty: it can.
[[nodiscard]] std::string fault_of(const Topic& topic, std::uint32_t num_ranks);

/// An order among topics, for maps.
struct TopicLess {
  bool operator()(const Topic& a, const Topic& b) const noexcept;
};

}  // namespace contextune::rank
