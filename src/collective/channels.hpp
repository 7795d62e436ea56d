#pragma once

#include <cstdint>
#include <vector>

#include "collective/cell.hpp"
#include "collective/collective.hpp"

namespace contextune::collective {

/// How many channels there are to use. Learned from the grids of kernels that ran.
struct ChannelLimits {
  int channels = 32;
  int nvls_channels = 32;
  /// The least traffic that NCCL gives a channel: 16 KiB up to 2.28, 32 KiB from 2.29 on. The
  /// smaller one only keeps more candidates.
  std::uint64_t min_traffic_bytes = std::uint64_t{16} << 10U;
};

/// The most channels that NCCL uses for one collective of that size when nothing else is in its
/// group; more of them are the same config. At least 1.
/// @param bytes message_bytes
[[nodiscard]] int useful_channels(Function function, std::uint64_t bytes, Cell cell,
                                  const ChannelLimits& limits) noexcept;

/// 1, 2, 4, 8, 16, 20, 24, ... and `most` itself: large messages, which take most of the time, are
/// often fastest with a number in between (ReduceScatter of 256 MiB on two H200s with 20).
[[nodiscard]] std::vector<int> channel_ladder(int most);

}  // namespace contextune::collective
