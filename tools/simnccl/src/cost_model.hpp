#pragma once

#include <cstddef>
#include <cstdint>

#include "tuner_abi.hpp"

namespace simnccl {

/// A collective, or several that are done as one, for the model.
struct Workload {
  int function = all_reduce;
  std::size_t bytes = 0;  // as the tuner sees them: the larger of what a rank sends and receives
  int ranks = 1;
};

/// Channels that a collective really uses: at most `wanted` (0: as many as the communicator has),
/// no more than the communicator has, and no more than there are pieces of 16 KiB to move.
[[nodiscard]] int channels_used(const Workload& work, int algorithm, int protocol, int wanted,
                                int available);

/// True where one host with NVLink and NVSwitch has the algorithm and protocol for a function.
[[nodiscard]] bool is_legal(const Workload& work, int algorithm, int protocol);

/// What the library believes before it has measured anything: the table that a tuner is asked with.
/// Microseconds; it knows nothing of channels, and thinks too well of NVLS.
[[nodiscard]] float estimate(const Workload& work, int algorithm, int protocol);

/// Seconds that it takes without noise, from the arrival of the last rank on.
[[nodiscard]] double seconds_of(const Workload& work, int algorithm, int protocol, int channels);

/// Seconds of one message between two ranks, without noise.
[[nodiscard]] double seconds_of_message(std::size_t bytes);

/// exp(sigma x normal), the same on all ranks that ask with the same numbers.
[[nodiscard]] double noise_factor(std::uint64_t stream, std::uint64_t sequence);

}  // namespace simnccl
