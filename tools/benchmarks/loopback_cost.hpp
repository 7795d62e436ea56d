#pragma once

#include <cstddef>

namespace bench {

/// CPU time of rank 0's control thread for a message, in microseconds, measured with real
/// connections over loopback: encoding and authentication included.
struct LoopbackCost {
  double send_us = 0;
  double receive_us = 0;
};

enum class Loopback { Unix, Tcp };

/// @param payload_bytes of every message
/// @throws std::runtime_error if the system has no sockets for it
[[nodiscard]] LoopbackCost measure_loopback(Loopback kind, std::size_t payload_bytes);

}  // namespace bench
