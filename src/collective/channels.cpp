#include "collective/channels.hpp"

#include <algorithm>

namespace contextune::collective {

int useful_channels(Function function, std::uint64_t bytes, Cell cell,
                    const ChannelLimits& limits) noexcept {
  const bool in_switch = cell.algorithm == Algorithm::Nvls || cell.algorithm == Algorithm::NvlsTree;
  const int exist = std::clamp(in_switch ? limits.nvls_channels : limits.channels, 1, max_channels);
  // An AllReduce sends everything twice. LL sends a flag with each word, and more to be fast.
  const std::uint64_t traffic_per_byte = std::uint64_t{function == Function::AllReduce ? 2U : 1U} *
                                         (cell.protocol == Protocol::LL ? 4U : 1U);
  const std::uint64_t bytes_per_channel =
      std::max<std::uint64_t>(1, limits.min_traffic_bytes / traffic_per_byte);
  const std::uint64_t filled =
      bytes / bytes_per_channel + (bytes % bytes_per_channel == 0 ? 0U : 1U);
  return static_cast<int>(std::clamp<std::uint64_t>(filled, 1, static_cast<std::uint64_t>(exist)));
}

std::vector<int> channel_ladder(int most) {
  std::vector<int> ladder;
  for (int channels = 1; channels < most; channels = channels < 16 ? 2 * channels : channels + 4)
    ladder.push_back(channels);
  ladder.push_back(std::max(most, 1));
  return ladder;
}

}  // namespace contextune::collective
