#include "rank/star/peer_calls.hpp"

#include <utility>

#include "rank/wire/endpoint.hpp"

namespace contextune::rank {

void PeerCalls::ask(std::uint32_t peer, const std::string& address, Message question) {
  if (stopped_) return;
  const auto place = calls_.find(peer);
  if (place != calls_.end()) {
    Call& call = place->second;
    if (call.connection->is_open()) return call.connection->send(question);
    return call.questions.push_back(std::move(question));
  }
  Endpoint endpoint;
  std::string error;
  int socket = -1;
  if (!address.empty() && find_endpoint(address, endpoint, error))
    socket = start_connecting(endpoint, error);
  if (socket < 0) {
    asio::post(loop_, [this, peer] { unreachable_(peer); });
    return;
  }
  Call& call = calls_[peer];
  call.connection = std::make_shared<Connection>(loop_, socket, self_, *this);
  call.questions.push_back(std::move(question));
  call.connection->call(peer, Purpose::Ask);
}

void PeerCalls::opened(Connection& connection) {
  Call& call = calls_[connection.peer()];
  for (const Message& question : call.questions) connection.send(question);
  call.questions.clear();
}

void PeerCalls::received(Connection& connection, Message message) {
  if (message.type != MessageType::Tell) return connection.close("it does not answer");
  answered_(connection.peer(), message);
}

void PeerCalls::closed(Connection& connection, const std::string&) {
  const std::uint32_t peer = connection.peer();
  calls_.erase(peer);
  if (!stopped_) unreachable_(peer);
}

void PeerCalls::close_all() {
  stopped_ = true;
  for (const auto& [peer, call] : calls_) call.connection->close("this process stops");
}

}  // namespace contextune::rank
