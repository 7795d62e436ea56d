#pragma once

#include <asio.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rank/wire/frame.hpp"
#include "rank/wire/handshake.hpp"
#include "rank/wire/message.hpp"

namespace contextune::rank {

class Connection;

/// Who this process is, to others.
struct Identity {
  MacKey key;
  std::uint64_t job = 0;
  std::uint32_t rank = 0;
  std::uint32_t num_ranks = 1;
};

/// The events that a connection reports to its owner, on the control thread. `closed` comes last,
/// once, and never from within a call of a connection's function.
class ConnectionOwner {
 public:
  /// Answers a caller that has proved that it knows the secret.
  [[nodiscard]] virtual Admission admit(const Claim& claim) = 0;
  virtual void opened(Connection& connection) = 0;
  virtual void received(Connection& connection, Message message) = 0;
  virtual void closed(Connection& connection, const std::string& why) = 0;

 protected:
  ~ConnectionOwner() = default;
};

/// A connection to another rank: the handshake, then frames. Used on the control thread only, never
/// blocks. Its owner must outlive the loop's run.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  /// @param socket taken over
  Connection(asio::io_context& loop, int socket, const Identity& self, ConnectionOwner& owner);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() = default;

  /// Starts as the one that was called.
  void answer();
  /// Starts as the one that calls; the socket may still be on its way.
  void call(std::uint32_t peer, Purpose purpose);

  void send(const Message& message);
  void close(const std::string& why);

  [[nodiscard]] bool is_starting() const noexcept { return state_ == State::Starting; }
  [[nodiscard]] bool is_open() const noexcept { return state_ == State::Open; }
  /// Whether a proof of this end has been sent, so that a silent end is the other's answer.
  [[nodiscard]] bool has_proved() const noexcept { return proved_; }
  [[nodiscard]] bool was_open() const noexcept { return reader_.has_value(); }
  [[nodiscard]] bool was_refused() const noexcept { return refused_; }
  [[nodiscard]] std::uint32_t peer() const noexcept { return peer_; }
  [[nodiscard]] Purpose purpose() const noexcept { return purpose_; }
  [[nodiscard]] int socket();
  /// Whether something has arrived that was not read yet.
  [[nodiscard]] bool has_input();

  double last_heard = 0;  ///< the owner's time

 private:
  enum class State : std::uint8_t { Starting, Open, Closed };
  template <class Next>
  void read_fixed(std::size_t size, Next next);
  void send_raw(std::vector<std::byte> bytes);
  void take_proof();
  void take_challenge();
  void take_welcome();
  void open(const Nonce& caller, bool is_caller);
  void read_frames();
  void write_next();

  asio::generic::stream_protocol::socket socket_;
  Identity self_;
  ConnectionOwner& owner_;
  State state_ = State::Starting;
  bool proved_ = false;
  bool refused_ = false;
  std::uint32_t peer_ = Agreement::no_rank;
  Purpose purpose_ = Purpose::Join;
  Nonce listener_nonce_{};
  Nonce caller_nonce_{};
  std::optional<FrameReader> reader_;
  std::optional<FrameWriter> writer_;
  std::vector<std::byte> input_;
  std::deque<std::vector<std::byte>> output_;
  std::size_t output_bytes_ = 0;
};

}  // namespace contextune::rank
