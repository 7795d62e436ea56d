#include "rank/star/relay_links.hpp"

#include <utility>

#include "rank/wire/endpoint.hpp"

namespace contextune::rank {

void RelayLinks::call_relay(std::uint32_t relay, const std::string& address) {
  if (std::exchange(called_, true)) return;
  Endpoint endpoint;
  std::string error;
  if (!find_endpoint(address, endpoint, error)) return;
  const int socket = start_connecting(endpoint, error);
  if (socket < 0) return;
  relay_ = std::make_shared<Connection>(loop_, socket, self_, owner_);
  relay_->last_heard = clock_.now();
  relay_->call(relay, Purpose::Relay);
}

bool RelayLinks::leave_relay(const std::string& why) {
  const std::shared_ptr<Connection> left = std::move(relay_);
  if (left == nullptr) return false;
  const bool was_attached = left->was_open();
  left->close(why);
  return was_attached;
}

void RelayLinks::serve(std::shared_ptr<Connection> connection) {
  const std::uint32_t rank = connection->peer();
  served_[rank] = std::move(connection);
}

bool RelayLinks::stop_serving(const Connection& connection) {
  const auto served = served_.find(connection.peer());
  if (served == served_.end() || served->second.get() != &connection) return false;
  served_.erase(served);
  return true;
}

void RelayLinks::send_to(std::uint32_t rank, const Message& message) {
  const auto served = served_.find(rank);
  if (served != served_.end()) served->second->send(message);
}

void RelayLinks::close_served(const std::string& why) {
  for (const auto& [rank, connection] : served_) connection->close(why);
}

void RelayLinks::close_all(const std::string& why) {
  check_each([&](Connection& connection) { connection.close(why); });
}

}  // namespace contextune::rank
