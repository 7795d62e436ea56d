#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace contextune::rank {

inline constexpr std::size_t unique_id_bytes = 128;

/// The secret and the host that an ncclUniqueId gives.
struct UniqueIdParts {
  std::string secret;  ///< all of it: it holds 64 random bits, and only the job's ranks are told it
  std::string host;    ///< of the rank that made it; empty: not recognised
};

/// NCCL calls the bytes opaque. Those of 2.19 and later hold a random number and then the socket
/// address of the rank that made them; anything that does not look like it has no host.
/// @param error a sentence, if the bytes are no secret
[[nodiscard]] UniqueIdParts parts_of_unique_id(std::span<const std::byte> id, std::string& error);

}  // namespace contextune::rank
