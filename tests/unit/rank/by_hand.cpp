#include "by_hand.hpp"

#include <chrono>
#include <utility>

#include "catch.hpp"
#include "rank/wire/endpoint.hpp"

using namespace contextune::rank;

ByHand::ByHand(const SocketSettings& settings, std::uint32_t rank)
    : settings_(settings),
      self_{key_of_secret(settings.secret), number_of_job(settings.job), rank, settings.num_ranks} {
}

std::shared_ptr<Connection> ByHand::call(Purpose purpose) {
  Endpoint endpoint;
  std::string error;
  REQUIRE(find_endpoint(settings_.address, endpoint, error));
  int socket = -1;
  while (socket < 0) socket = start_connecting(endpoint, error);
  auto connection = std::make_shared<Connection>(loop_, socket, self_, *this);
  connection->call(0, purpose);
  run_until([&] { return connection->is_open() || end_; });
  REQUIRE_FALSE(end_);
  return connection;
}

void ByHand::tell_address(Connection& joined, const std::string& address) {
  Message listening;
  listening.type = MessageType::Listening;
  listening.addresses = {address};
  joined.send(listening);
}

std::string ByHand::listen() {
  std::string error;
  listener_.assign(listen_at("unix:", error));
  accept_next();
  return address_of_listener(listener_.native_handle());
}

void ByHand::accept_next() {
  listener_.async_wait(asio::posix::descriptor_base::wait_read, [this](asio::error_code error) {
    if (error) return;
    if (const int socket = accept_caller(listener_.native_handle()); socket >= 0) {
      callers_.push_back(std::make_shared<Connection>(loop_, socket, self_, *this));
      callers_.back()->answer();
    }
    accept_next();
  });
}

std::optional<Message> ByHand::next(MessageType type) {
  // Several may come at once.
  std::optional<Message> found;
  run_until([&] {
    while (!found && !unread_.empty()) {
      if (unread_.front().type == type) found = std::move(unread_.front());
      unread_.pop_front();
    }
    return found || end_;
  });
  return found;
}

void ByHand::run_until(const std::function<bool()>& is_done) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!is_done() && std::chrono::steady_clock::now() < until)
    loop_.run_one_for(std::chrono::milliseconds(20));
  REQUIRE(is_done());
}

Admission ByHand::admit(const Claim&) {
  ++num_callers;
  return Admission::Welcome;
}

void ByHand::opened(Connection&) {}

void ByHand::received(Connection&, Message message) {
  if (message.type == MessageType::Peers) {
    epoch = message.epoch;
    introductions.push_back(message);
  }
  unread_.push_back(std::move(message));
}

void ByHand::closed(Connection&, const std::string&) {
  end_ = true;
}
