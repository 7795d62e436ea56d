#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

#include "rank/members/relay_spans.hpp"
#include "rank/wire/message.hpp"

namespace contextune::rank {

/// The relay of a span of ranks: joins what they send to the hub into one message, and takes apart
/// what the hub sends to them. Like Hub and Member: no sockets, clock or thread. Not thread-safe.
///
/// It keeps a message until those of all its ranks in the topic are there, or for hold_seconds.
/// Nobody loses by that: the hub needs the last of them, which goes on at once.
/// It decides nothing, and nothing depends on it: a rank that loses its relay repeats to the hub
/// what the hub may not have, and so does the hub to the rank.
class Relay {
 public:
  static constexpr double hold_seconds = 0.002;

  Relay(std::uint32_t rank, const RelaySpans& spans) : rank_(rank), spans_(spans) {}

  /// Whether it is the other rank's relay.
  [[nodiscard]] bool serves(std::uint32_t rank) const noexcept {
    return rank != rank_ && spans_.relay_of(rank) == rank_;
  }
  /// From now on it passes on that rank's messages.
  void attach(std::uint32_t rank) { attached_.insert(rank); }
  void detach(std::uint32_t rank, Outbox& out);

  /// Takes what an attached rank, or its own, says to the hub. Returns what was wrong with it: the
  /// rank is then not to be trusted.
  [[nodiscard]] std::string pass_up(std::uint32_t from, Message message, double now, Outbox& out);
  /// Takes what the hub says to some of its ranks; its own comes last. Returns what was wrong.
  [[nodiscard]] std::string pass_down(const Message& message, Outbox& out);
  /// Passes on what has been kept for long enough.
  void tick(double now, Outbox& out);
  [[nodiscard]] bool holds_messages() const noexcept { return num_held_ > 0; }

 private:
  /// Messages of one type about one topic.
  struct Kept {
    std::map<std::uint32_t, Payload> held;
    std::set<std::uint32_t> passed;  ///< before those, since they took too long
    std::size_t bytes = 0;
    double since = 0;
    double seconds = 0;  ///< the shortest that was stated
    std::uint32_t kind = 0;
  };
  using ByType = std::map<MessageType, Kept>;
  using ByTopic = std::map<Topic, ByType, TopicLess>;

  [[nodiscard]] bool is_mine(std::uint32_t rank) const {
    return rank == rank_ || attached_.contains(rank);
  }
  [[nodiscard]] bool is_complete(const Topic& topic, const Kept& kept) const;
  void pass(const Topic& topic, MessageType type, Kept& kept, Outbox& out);
  void forget(const Topic& topic, MessageType until);

  std::uint32_t rank_;
  RelaySpans spans_;
  std::set<std::uint32_t> attached_;
  ByTopic topics_;
  std::size_t num_held_ = 0;
};

}  // namespace contextune::rank
