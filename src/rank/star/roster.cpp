#include "rank/star/roster.hpp"

#include <utility>

namespace contextune::rank {

void Roster::set_address(std::uint32_t rank, std::string address) {
  addresses_[rank] = std::move(address);
  changed_ = true;
}

void Roster::take(Message peers) {
  epoch_ = peers.epoch;
  addresses_ = std::move(peers.addresses);
}

void Roster::join(std::shared_ptr<Connection> connection) {
  const std::uint32_t rank = connection->peer();
  joined_[rank] = std::move(connection);
}

bool Roster::leave(const Connection& connection) {
  const auto joined = joined_.find(connection.peer());
  if (joined == joined_.end() || joined->second.get() != &connection) return false;
  joined_.erase(joined);
  return true;
}

void Roster::send_to(std::uint32_t rank, const Message& message) {
  const auto joined = joined_.find(rank);
  if (joined != joined_.end()) joined->second->send(message);
}

void Roster::send_changes() {
  if (!std::exchange(changed_, false)) return;
  Message peers;
  peers.type = MessageType::Peers;
  peers.epoch = epoch_;
  peers.addresses = addresses_;
  for (const auto& [rank, connection] : joined_) connection->send(peers);
}

}  // namespace contextune::rank
