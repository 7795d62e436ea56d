// What relays pass on, at each of its ends: see Relay.
#include <utility>

#include "rank/star/socket_star.hpp"

namespace contextune::rank {

void SocketStar::send_up(Message message) {
  if (!is_relayed_up(message.type) || !spans_.carry(message.topic))
    return to_hub_.send(std::move(message));
  if (links_.is_attached()) return links_.send_to_relay(message);
  if (!relay_) return to_hub_.send(std::move(message));
  Outbox out;
  // The member is ours: what it sends is right.
  static_cast<void>(relay_->pass_up(self_.rank, std::move(message), ticks_.now(), out));
  send_all_up(out);
}

void SocketStar::send_all_up(const Outbox& of_relay) {
  if (is_lost_) return;
  for (const Outgoing& outgoing : of_relay) to_hub_.send(outgoing.message);
}

std::string SocketStar::pass_down(const Message& message) {
  if (!relay_) return "rank 0 takes this rank for a relay";
  Outbox out;
  std::string fault = relay_->pass_down(message, out);
  for (Outgoing& outgoing : out) {
    if (outgoing.to != self_.rank) {
      links_.send_to(outgoing.to, outgoing.message);
    } else if (fault.empty()) {
      fault = give_member(std::move(outgoing.message));
    }
  }
  return fault;
}

void SocketStar::take_from_relay(Connection& connection, Message message) {
  const bool is_passed_on = is_relayed_down(message.type) && message.ranks.empty();
  const std::string fault =
      is_passed_on ? give_member(std::move(message)) : "a relay says nothing itself";
  if (!fault.empty()) connection.close(fault);
}

void SocketStar::take_from_served(Connection& connection, Message message) {
  Outbox out;
  const std::string fault =
      relay_->pass_up(connection.peer(), std::move(message), ticks_.now(), out);
  send_all_up(out);
  arm_tick();
  if (!fault.empty()) connection.close(fault);
}

void SocketStar::leave_relay(const std::string& why) {
  has_relay_.store(false, std::memory_order_relaxed);
  if (!links_.leave_relay(why) || stopping_) return;
  if (is_lost_) {
    member_.with([](Member& member) { member.relay_ended(); });
    return member_.tell_waiting();
  }
  Message detach;
  detach.type = MessageType::Detach;
  to_hub_.send(std::move(detach));
  Outbox out;
  member_.with([&](Member& member) { member.repeat(out); });
  dispatch(std::move(out), {}, false);
}

void SocketStar::stop_serving(std::uint32_t rank) {
  Outbox out;
  relay_->detach(rank, out);
  send_all_up(out);
}

void SocketStar::tell_relay(std::uint32_t rank) {
  const auto tell = [&](std::uint32_t to, std::uint32_t relay) {
    Message message;
    message.type = MessageType::Relay;
    message.addresses = {roster_.address_of(relay)};
    if (roster_.has_joined(relay) && !message.addresses.front().empty())
      roster_.send_to(to, message);
  };
  if (const std::uint32_t relay = spans_.relay_of(rank); relay != 0 && relay != rank)
    tell(rank, relay);
  if (!spans_.is_relay(rank)) return;
  for (const auto& [other, connection] : roster_.joined())
    if (other != rank && spans_.relay_of(other) == rank) tell(other, rank);
}

std::string SocketStar::take_of_several(Connection& connection, Message message, Outbox& out) {
  if (!spans_.is_relay(connection.peer())) return name_of(connection.peer()) + " speaks for others";
  const RankSet ranks = routes_.spoken_for(connection.peer(), message.ranks);
  if (ranks.empty()) return {};
  if (ranks != message.ranks) message = some_of(message, ranks);
  return hub_->receive(connection.peer(), std::move(message), ticks_.now(), out);
}

}  // namespace contextune::rank
