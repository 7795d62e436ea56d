#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "collective/collective.hpp"

namespace contextune::collective {

/// Why an exchange between all ranks keeps the default.
inline constexpr std::string_view all_to_all_untunable =
    "lowered to point-to-point; the tuner plugin is not asked";

/// One Send or Recv of a group.
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

/// The exchange that the Sends and Recvs of one communicator in one group are, in any order: each
/// of its `ranks`, this one included, is sent to once and received from once, with one count and
/// one datatype. Absent: they are something else.
[[nodiscard]] std::optional<AllToAll> find_all_to_all(std::span<const PeerCall> calls, int ranks);

}  // namespace contextune::collective
