#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "rank/wire/connection.hpp"

namespace contextune::rank {

/// The ranks of a job, as rank 0 keeps them and tells them to the others: who has joined, and where
/// each listens. The others have the epoch and the addresses. Used on the control thread only.
class Roster {
 public:
  explicit Roster(std::uint32_t num_ranks) : addresses_(num_ranks) {}
  Roster(const Roster&) = delete;
  Roster& operator=(const Roster&) = delete;

  /// The time of this rank 0, which another process in its place does not know of; 0: not known
  /// yet.
  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
  void set_epoch(std::uint64_t epoch) noexcept { epoch_ = epoch; }
  /// Where the rank listens; empty: it is not known.
  [[nodiscard]] const std::string& address_of(std::uint32_t rank) const { return addresses_[rank]; }
  void set_address(std::uint32_t rank, std::string address);
  /// Where rank 0 listens, which all know.
  void set_hub_address(const std::string& address) { addresses_[0] = address; }
  /// Takes over what rank 0 told.
  void take(Message peers);

  // Of rank 0:

  /// A rank has proved who it is. @return false: it has been seen before
  [[nodiscard]] bool see(std::uint32_t rank) { return seen_.insert(rank).second; }
  [[nodiscard]] std::size_t num_seen() const noexcept { return seen_.size(); }
  void join(std::shared_ptr<Connection> connection);
  /// @return false: the connection is not one of a rank that has joined
  [[nodiscard]] bool leave(const Connection& connection);
  /// The connections of those that have joined.
  using Joined = std::map<std::uint32_t, std::shared_ptr<Connection>>;
  [[nodiscard]] const Joined& joined() const noexcept { return joined_; }
  void send_to(std::uint32_t rank, const Message& message);
  [[nodiscard]] bool has_joined(std::uint32_t rank) const { return joined_.contains(rank); }
  /// Tells a rank where those of the topic listen, if it has not been told that.
  /// @param through a relay, that tells those ranks; empty: the rank itself
  void introduce(const Topic& topic, std::uint32_t to, const RankSet& through);
  /// What the rank was told may have been lost.
  void forget_introductions(std::uint32_t rank) { introduced_.erase(rank); }

 private:
  Joined joined_;
  std::set<std::uint32_t> seen_;  // ranks that ever joined
  std::vector<std::string> addresses_;
  std::uint64_t epoch_ = 0;
  std::map<std::uint32_t, std::set<RankSet>> introduced_;  // by rank: to whom
  Message introduction_;                                   // the last one; most are alike
};

}  // namespace contextune::rank
