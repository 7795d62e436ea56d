#pragma once

#include <asio.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rank/star/socket_coordinator.hpp"
#include "rank/wire/connection.hpp"

/// A rank, played by hand.
class ByHand final : public contextune::rank::ConnectionOwner {
 public:
  explicit ByHand(const contextune::rank::SocketSettings& settings, std::uint32_t rank = 1);

  /// Calls rank 0.
  std::shared_ptr<contextune::rank::Connection> call(contextune::rank::Purpose purpose);
  /// Tells rank 0 where it says that it listens.
  void tell_address(contextune::rank::Connection& joined, const std::string& address);
  /// Lets everybody in from now on. @return where it listens
  std::string listen();
  /// The next message of the type; nothing: the connection ended before.
  std::optional<contextune::rank::Message> next(contextune::rank::MessageType type);
  void forget_end() { end_ = false; }
  void run_until(const std::function<bool()>& is_done);

  contextune::rank::Admission admit(const contextune::rank::Claim& claim) override;
  void opened(contextune::rank::Connection& connection) override;
  void received(contextune::rank::Connection& connection,
                contextune::rank::Message message) override;
  void closed(contextune::rank::Connection& connection, const std::string& why) override;

  std::uint64_t epoch = 0;
  std::vector<contextune::rank::Message> introductions;
  std::size_t num_callers = 0;  ///< that were let in

 private:
  void accept_next();

  contextune::rank::SocketSettings settings_;
  contextune::rank::Identity self_;
  asio::io_context loop_;
  asio::posix::stream_descriptor listener_{loop_};
  std::vector<std::shared_ptr<contextune::rank::Connection>> callers_;
  std::deque<contextune::rank::Message> unread_;
  bool end_ = false;
};
