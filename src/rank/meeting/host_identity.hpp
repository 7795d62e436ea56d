#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace contextune::rank {

/// The facts that other ranks need about the host that this process is on.
struct HostIdentity {
  /// Equal for two processes: an abstract Unix socket of one lets the other in. So it is not only
  /// the host, but the network that is seen from here (containers) and the user as well.
  std::uint64_t local = 0;
  /// Under which the host may be reached, the likeliest first: numbers, IPv6 in brackets.
  std::vector<std::string> addresses;
};

/// Reads /proc and asks for the interfaces. At most most_host_addresses; one of the loopback only
/// if there is no other.
[[nodiscard]] HostIdentity identify_host();

inline constexpr std::size_t most_host_addresses = 6;

}  // namespace contextune::rank
