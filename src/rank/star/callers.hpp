#pragma once

#include <asio.hpp>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "rank/wire/connection.hpp"
#include "rank/wire/tick_timer.hpp"

namespace contextune::rank {

/// Those who call this rank and have not joined. Lets them in one by one: only a few at a time that
/// have not proved who they are, and nobody while the program has hardly any descriptors left. Used
/// on the control thread only.
class Callers {
 public:
  /// @param owner of their connections
  /// @param descriptors_changed lacks_descriptors() did
  /// @param came somebody may have come, or waits to be let in
  Callers(asio::io_context& loop, const Identity& self, ConnectionOwner& owner,
          const TickTimer& clock, std::function<void()> descriptors_changed,
          std::function<void()> came);
  Callers(const Callers&) = delete;
  Callers& operator=(const Callers&) = delete;

  /// @param socket that listens; taken over
  void listen(int socket);
  /// Where it listens, for others.
  [[nodiscard]] std::string address();
  /// Lets in whoever comes; from now on, or again after there was no room.
  void accept_next();
  /// Nobody is let in any more. @return whether anybody was before
  bool stop_listening();

  [[nodiscard]] bool lacks_descriptors() const noexcept { return lacks_descriptors_; }
  /// Counts those that have not proved yet who they are.
  [[nodiscard]] std::size_t num_strangers() const;

  /// This one has joined. @return its connection
  [[nodiscard]] std::shared_ptr<Connection> take(Connection& connection);
  void forget(Connection& connection) { callers_.erase(&connection); }
  /// Hangs up on those that do not say who they are.
  void check(double time);
  void close_all(const std::string& why);

 private:
  [[nodiscard]] bool has_room();
  void note_descriptors();

  asio::io_context& loop_;
  const Identity& self_;
  ConnectionOwner& owner_;
  const TickTimer& clock_;
  std::function<void()> descriptors_changed_;
  std::function<void()> came_;
  asio::posix::stream_descriptor listener_;
  std::map<Connection*, std::shared_ptr<Connection>> callers_;
  bool accepting_ = false;
  bool lacks_descriptors_ = false;
};

}  // namespace contextune::rank
