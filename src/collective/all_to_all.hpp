#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "collective/collective.hpp"

namespace contextune::collective {

/// Why an exchange between all ranks keeps the default.
inline constexpr std::string_view all_to_all_untunable =
    "NCCL makes messages of it, and asks no tuner about those";

/// A Send or Recv of a group.
struct PeerCall {
  enum class Direction : std::uint8_t { Send, Recv };
  Direction direction = Direction::Send;
  int peer = 0;
  std::uint64_t count = 0;
  Datatype datatype = Datatype::U8;
};

/// An exchange in which every rank sends as much to every other.
struct AllToAll {
  std::uint64_t count = 0;  ///< elements for each peer
  Datatype datatype = Datatype::U8;
  std::uint64_t bytes = 0;  ///< message_bytes

  [[nodiscard]] bool operator==(const AllToAll& other) const = default;
};

/// The Sends and Recvs of one communicator in one group, as they come. Allocates nothing and needs
/// no destructor.
class PeerCalls {
 public:
  static constexpr int most_ranks = 512;

  void add(const PeerCall& call) noexcept;

  /// The exchange that the calls make, in any order, with one count and one datatype. Each of the
  /// communicator's `ranks`, or each but one, is sent to once and received from once. That one is
  /// the caller, which copies its own part. Absent: the calls are something else.
  [[nodiscard]] std::optional<AllToAll> all_to_all(int ranks) const noexcept;

 private:
  using Peers = std::bitset<static_cast<std::size_t>(most_ranks)>;

  std::size_t num_calls_ = 0;
  bool is_something_else_ = false;
  std::uint64_t count_ = 0;
  Datatype datatype_ = Datatype::U8;
  Peers sent_to_;
  Peers received_from_;
};

}  // namespace contextune::collective
