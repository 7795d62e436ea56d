#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/coordination/coordinator.hpp"
#include "rank/members/agreement_hub.hpp"
#include "rank/members/relay_spans.hpp"
#include "rank/wire/listener.hpp"

namespace contextune::rank {

class SocketStar;

/// Who is to agree, where, and how long things may take. Times are seconds.
struct SocketSettings {
  std::uint32_t rank = 0;
  std::uint32_t num_ranks = 1;
  std::string job;      ///< the same on all ranks, another one for each job
  std::string address;  ///< of rank 0: "unix:NAME", "tcp:HOST:PORT" or "tcp:HOST,HOST:PORT"
  std::shared_ptr<Listener> listener;  ///< of rank 0, at that address; null: it is opened there
  std::string secret;  ///< at least min_secret_bytes for TCP; may be empty on one host

  double join_seconds = 30;      ///< until rank 0 must have been reached
  double heartbeat_seconds = 1;  ///< between signs of life
  double silence_seconds = 5;    ///< after which a rank without one counts as lost
  double vote_seconds = 5;       ///< for all to vote on a decision
  /// For asking the others once rank 0 is lost. All that have ended are known to know nothing at
  /// once; whoever only stands still may know that it was committed.
  double recovery_seconds = 600;
  /// Who waits asks again and again for a while before it sleeps. Only where each rank has
  /// processors for that, beside those of the ranks that it waits for.
  bool may_spin = false;
  /// The same on all ranks: jobs of so many have relays, for topics of so many ranks.
  std::uint32_t fewest_relayed_ranks = RelaySpans::fewest_ranks;
};

/// Ranks that agree through sockets of their own, beside whatever the program does: a star through
/// rank 0, and calls among the others once it is lost. A single thread in each process, which takes
/// no signals, does all the work. Deciders run on that thread, and must be quick against
/// `silence_seconds`.
///
/// Joining goes on behind the scenes: what is said before waits for it. A rank whose connection
/// ended stays out, and so does a second process with a rank that has been seen. In a child of fork
/// every topic is aborted, and nothing is touched.
/// A rank that is killed while a child of its fork lives on is noticed by its silence only: the
/// child holds its sockets.
class SocketCoordinator final : public Coordinator {
 public:
  SocketCoordinator(const SocketSettings& settings, Deciders deciders) noexcept;
  /// Closes; what is open here ends as Aborted or Unknown. No other call may be under way.
  ~SocketCoordinator() override;
  SocketCoordinator(const SocketCoordinator&) = delete;
  SocketCoordinator& operator=(const SocketCoordinator&) = delete;

  [[nodiscard]] std::uint32_t rank() const noexcept override { return rank_; }
  [[nodiscard]] std::uint32_t num_ranks() const noexcept override { return num_ranks_; }
  void say(const Topic& topic, std::uint32_t kind, Payload part, double seconds) noexcept override;
  [[nodiscard]] Agreement poll(const Topic& topic) noexcept override;
  [[nodiscard]] Agreement wait(const Topic& topic, double seconds) noexcept override;
  void withdraw(const Topic& topic, std::string why) noexcept override;
  void occupied(const Topic& topic, double seconds, std::string why) noexcept override;
  void engage(const std::vector<std::uint32_t>& ranks, std::string why) noexcept override;
  void disengage(const std::vector<std::uint32_t>& ranks) noexcept override;
  [[nodiscard]] std::string lost() const override;
  /// Whether a relay passes on what this rank says about large topics. Any thread.
  [[nodiscard]] bool has_relay() const noexcept;

 private:
  [[nodiscard]] bool usable() const noexcept;
  [[nodiscard]] Agreement refusal() const noexcept;

  std::uint32_t rank_;
  std::uint32_t num_ranks_;
  pid_t process_;
  std::shared_ptr<SocketStar> star_;  // null: it could not be made
};

}  // namespace contextune::rank
