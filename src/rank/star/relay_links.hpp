#pragma once

#include <asio.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "rank/wire/connection.hpp"
#include "rank/wire/tick_timer.hpp"

namespace contextune::rank {

/// The connections of a rank with its relay, and with the ranks that it is the relay of. Used on
/// the control thread only, never blocks but for looking up a host's name.
class RelayLinks {
 public:
  RelayLinks(asio::io_context& loop, const Identity& self, ConnectionOwner& owner,
             const TickTimer& clock)
      : loop_(loop), self_(self), owner_(owner), clock_(clock) {}
  RelayLinks(const RelayLinks&) = delete;
  RelayLinks& operator=(const RelayLinks&) = delete;

  /// Calls the relay, once: if it cannot be reached, there is no relay.
  void call_relay(std::uint32_t relay, const std::string& address);
  [[nodiscard]] bool is_relay(const Connection& connection) const noexcept {
    return &connection == relay_.get();
  }
  [[nodiscard]] bool is_attached() const noexcept { return relay_ != nullptr && relay_->is_open(); }
  /// While it is attached.
  void send_to_relay(const Message& message) { relay_->send(message); }
  /// From now on there is no relay. @return false: there was none
  [[nodiscard]] bool leave_relay(const std::string& why);

  void serve(std::shared_ptr<Connection> connection);
  [[nodiscard]] bool serves(std::uint32_t rank) const { return served_.contains(rank); }
  /// @return false: the connection is not one of a rank that is served
  [[nodiscard]] bool stop_serving(const Connection& connection);
  void send_to(std::uint32_t rank, const Message& message);

  /// Calls `check` with each connection.
  template <class Check>
  void check_each(Check check) {
    if (relay_ != nullptr) check(*relay_);
    for (const auto& [rank, connection] : served_) check(*connection);
  }
  void close_served(const std::string& why);
  void close_all(const std::string& why);

 private:
  asio::io_context& loop_;
  const Identity& self_;
  ConnectionOwner& owner_;
  const TickTimer& clock_;
  std::shared_ptr<Connection> relay_;
  bool called_ = false;
  std::map<std::uint32_t, std::shared_ptr<Connection>> served_;
};

}  // namespace contextune::rank
