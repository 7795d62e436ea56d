#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "rank/members/relay_spans.hpp"
#include "rank/wire/message.hpp"

namespace contextune::rank {

/// The ways of messages between the hub and the ranks, on rank 0: through a rank's relay or not.
/// Not thread-safe.
///
/// All that is said about one topic to an attached rank takes one way, and so does what it says:
/// whoever detaches does so for good, and nothing that its relay still says for it counts.
class RelayRoutes {
 public:
  RelayRoutes(std::uint32_t num_ranks, const RelaySpans& spans)
      : spans_(spans), ways_(num_ranks, Way::Own) {}

  /// The rank's relay passes messages on, or does so no more.
  void attach(std::uint32_t rank) {
    if (ways_[rank] == Way::Own && spans_.relay_of(rank) != 0) ways_[rank] = Way::Relay;
  }
  void detach(std::uint32_t rank) { ways_[rank] = Way::Detached; }

  /// Those for whom a relay speaks: of its span, and not detached.
  [[nodiscard]] RankSet spoken_for(std::uint32_t relay, const RankSet& ranks) const {
    return ranks.filtered([&](std::uint32_t rank) {
      return rank == relay || (spans_.relay_of(rank) == relay && ways_[rank] != Way::Detached);
    });
  }

  /// Calls `send(rank, message)` for each message that the outgoing one takes: to ranks themselves,
  /// and to relays. Rank 0 comes last: as soon as its process has its answer it may end.
  /// @param is_there whether a relay can be reached
  template <class Send, class IsThere>
  void pass_down(Outgoing outgoing, IsThere is_there, Send send) const {
    const Message& message = outgoing.message;
    const bool several = !message.ranks.empty();
    const bool is_carried = is_relayed_down(message.type) && spans_.carry(message.topic);
    const auto relay_for = [&](std::uint32_t rank) {
      const std::uint32_t relay = spans_.relay_of(rank);
      const bool is_served = ways_[rank] == Way::Relay || (several && rank == relay);
      return is_carried && relay != 0 && is_served && is_there(relay) ? relay : 0;
    };
    if (!several) {
      const std::uint32_t relay = relay_for(outgoing.to);
      if (relay == 0) return send(outgoing.to, std::move(outgoing.message));
      return send(relay, of_several(std::move(outgoing.message), outgoing.to));
    }
    RankSet together;
    std::uint32_t relay = 0;
    const auto send_together = [&] {
      if (!together.empty()) send(relay, some_of(message, std::exchange(together, {})));
    };
    for (std::size_t place = 0; const std::uint32_t rank : message.ranks) {
      const std::uint32_t its_relay = relay_for(rank);
      if (its_relay != relay) send_together();
      relay = its_relay;
      if (relay != 0) {
        together.push_back(rank);
      } else if (rank != 0) {
        send(rank, one_of(message, place));
      }
      ++place;
    }
    send_together();
    if (message.ranks.front() == 0) send(0U, one_of(message, 0));
  }

 private:
  enum class Way : std::uint8_t { Own, Relay, Detached };

  [[nodiscard]] static Message of_several(Message message, std::uint32_t rank) {
    message.ranks = {rank};
    if (message.type == MessageType::Propose) message.waits = {message.seconds};
    return message;
  }

  RelaySpans spans_;
  std::vector<Way> ways_;  ///< by rank
};

}  // namespace contextune::rank
