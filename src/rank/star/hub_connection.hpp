#pragma once

#include <asio.hpp>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "rank/wire/connection.hpp"
#include "rank/wire/tick_timer.hpp"

namespace contextune::rank {

/// The connection of another rank to rank 0, from the first attempt on; keeps what is to be sent
/// until it is open. Used on the control thread only, never blocks but for looking up a host's
/// name.
class HubConnection {
 public:
  /// @param address of rank 0
  /// @param owner of the connection
  HubConnection(asio::io_context& loop, const Identity& self, const std::string& address,
                ConnectionOwner& owner, const TickTimer& clock)
      : loop_(loop), self_(self), address_(address), owner_(owner), clock_(clock) {}
  HubConnection(const HubConnection&) = delete;
  HubConnection& operator=(const HubConnection&) = delete;

  /// Tries to reach rank 0. @return why it cannot be called now; empty: it is
  [[nodiscard]] std::string call();
  /// Whether nobody is called, and it is time to call again.
  [[nodiscard]] bool is_to_call(double time) const noexcept {
    return connection_ == nullptr && time >= call_again_;
  }

  /// Null: none is under way.
  [[nodiscard]] Connection* get() const noexcept { return connection_.get(); }
  [[nodiscard]] bool is_open() const noexcept {
    return connection_ != nullptr && connection_->is_open();
  }

  /// At once, or once it is open.
  void send(Message message);
  /// It is open. @param listening goes first
  void opened(const Message& listening);
  /// It has ended. @return the reason, as a clause, if rank 0 is lost thereby; else it is called
  /// again
  [[nodiscard]] std::string closed(const std::string& why);
  /// A rank has proved to have the same secret.
  void note_proof() noexcept { silent_ends_ = 0; }
  /// Nothing is to be sent any more.
  void drop_unsent() noexcept { to_send_.clear(); }

 private:
  asio::io_context& loop_;
  const Identity& self_;
  const std::string& address_;
  ConnectionOwner& owner_;
  const TickTimer& clock_;
  std::shared_ptr<Connection> connection_;
  std::vector<Message> to_send_;  // once it is open
  int silent_ends_ = 0;           // of rank 0, since it was reached
  double call_again_ = 0;
  std::size_t attempts_ = 0;
};

}  // namespace contextune::rank
