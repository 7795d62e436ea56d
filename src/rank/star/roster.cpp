#include "rank/star/roster.hpp"

#include <utility>

namespace contextune::rank {

void Roster::set_address(std::uint32_t rank, std::string address) {
  addresses_[rank] = std::move(address);
  introduction_ = {};
}

void Roster::take(Message peers) {
  epoch_ = peers.epoch;
  auto address = peers.addresses.begin();
  for (const std::uint32_t rank : peers.topic.ranks) addresses_[rank] = std::move(*address++);
}

void Roster::join(std::shared_ptr<Connection> connection) {
  const std::uint32_t rank = connection->peer();
  joined_[rank] = std::move(connection);
}

bool Roster::leave(const Connection& connection) {
  const auto joined = joined_.find(connection.peer());
  if (joined == joined_.end() || joined->second.get() != &connection) return false;
  joined_.erase(joined);
  introduced_.erase(connection.peer());
  return true;
}

void Roster::send_to(std::uint32_t rank, const Message& message) {
  const auto joined = joined_.find(rank);
  if (joined != joined_.end()) joined->second->send(message);
}

// Only the ranks of its topics: if each was told of all whenever one had joined, the start of a
// large job would take bytes with the cube of its ranks.
void Roster::introduce(const Topic& topic, std::uint32_t to, const RankSet& through) {
  const auto joined = joined_.find(to);
  if (joined == joined_.end()) return;
  const RankSet all = through.empty() ? RankSet{to} : through;
  const RankSet strangers = all.filtered(
      [&](std::uint32_t rank) { return introduced_[rank].insert(topic.ranks).second; });
  if (strangers.empty()) return;
  if (introduction_.topic.ranks != topic.ranks) {
    introduction_ = {};
    introduction_.type = MessageType::Peers;
    introduction_.epoch = epoch_;
    introduction_.topic = topic;
    for (const std::uint32_t rank : topic.ranks)
      introduction_.addresses.push_back(addresses_[rank]);
  }
  introduction_.ranks = through.empty() ? RankSet{} : strangers;
  joined->second->send(introduction_);
}

}  // namespace contextune::rank
