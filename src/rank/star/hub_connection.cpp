#include "rank/star/hub_connection.hpp"

#include <utility>

#include "rank/wire/endpoint.hpp"

namespace contextune::rank {
namespace {

constexpr double join_interval_seconds = 0.05;
// In a row, of a listener that may have turned this rank away before it could prove itself.
constexpr int most_silent_ends = 8;

}  // namespace

std::string HubConnection::call() {
  Endpoint endpoint;
  std::string error;
  int socket = -1;
  if (find_endpoint(address_, endpoint, error, attempts_++))
    socket = start_connecting(endpoint, error);
  call_again_ = clock_.now() + join_interval_seconds;
  if (socket < 0) return error;
  connection_ = std::make_shared<Connection>(loop_, socket, self_, owner_);
  connection_->last_heard = clock_.now();
  connection_->call(0, Purpose::Join);
  return error;
}

void HubConnection::send(Message message) {
  if (is_open()) return connection_->send(message);
  to_send_.push_back(std::move(message));
}

void HubConnection::opened(const Message& listening) {
  connection_->send(listening);
  for (const Message& message : to_send_) connection_->send(message);
  to_send_.clear();
}

std::string HubConnection::closed(const std::string& why) {
  const std::shared_ptr<Connection> ended = std::move(connection_);
  const std::string hub = "rank 0 at " + address_;
  if (ended->was_open()) return hub + " is lost: " + why;
  if (ended->was_refused()) return hub + ": " + why;
  if (ended->has_proved() && ++silent_ends_ >= most_silent_ends)
    return hub +
           " hung up without a word: it has ended, or the secret is not the same on all ranks";
  return {};
}

}  // namespace contextune::rank
