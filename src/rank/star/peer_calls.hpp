#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rank/wire/connection.hpp"

namespace contextune::rank {

/// The calls of a rank that lost the hub, to those that may know more. Used on the control thread
/// only, never blocks but for looking up a host's name.
class PeerCalls final : public ConnectionOwner {
 public:
  using Answered = std::function<void(std::uint32_t peer, const Message& answer)>;
  using Unreachable = std::function<void(std::uint32_t peer)>;

  PeerCalls(asio::io_context& loop, const Identity& self, Answered answered,
            Unreachable unreachable)
      : loop_(loop),
        self_(self),
        answered_(std::move(answered)),
        unreachable_(std::move(unreachable)) {}
  PeerCalls(const PeerCalls&) = delete;
  PeerCalls& operator=(const PeerCalls&) = delete;
  ~PeerCalls() = default;

  /// @param address of the peer; empty: it is not known
  void ask(std::uint32_t peer, const std::string& address, Message question);
  void close_all();

  [[nodiscard]] Admission admit(const Claim&) override { return Admission::NotHere; }
  void opened(Connection& connection) override;
  void received(Connection& connection, Message message) override;
  void closed(Connection& connection, const std::string& why) override;

 private:
  struct Call {
    std::shared_ptr<Connection> connection;
    std::vector<Message> questions;  // until it is open
  };

  asio::io_context& loop_;
  Identity self_;
  Answered answered_;
  Unreachable unreachable_;
  std::map<std::uint32_t, Call> calls_;
  bool stopped_ = false;
};

}  // namespace contextune::rank
