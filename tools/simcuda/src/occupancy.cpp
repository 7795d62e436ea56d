#include "occupancy.hpp"

#include <algorithm>
#include <array>

namespace simcuda {

namespace {

// The amounts that compute capability 9.0 supports.
constexpr std::array<std::size_t, 10> shared_steps_kib{0, 8, 16, 32, 64, 100, 132, 164, 196, 228};

std::size_t at_least(std::size_t bytes) {
  for (const std::size_t step : shared_steps_kib)
    if (step * 1024 >= bytes) return step * 1024;
  return shared_steps_kib.back() * 1024;
}

unsigned round_up(unsigned value, unsigned step) {
  return (value + step - 1) / step * step;
}

}  // namespace

unsigned blocks_per_sm(const DeviceProfile& profile, const BlockDemand& demand,
                       std::size_t shared_limit_bytes) {
  if (demand.threads == 0 || demand.threads > profile.max_threads_per_block) return 0;
  const unsigned warps = (demand.threads + profile.warp_size - 1) / profile.warp_size;
  const unsigned max_warps = profile.max_threads_per_sm / profile.warp_size;
  const unsigned per_warp = round_up(std::max(demand.registers_per_thread, 1U) * profile.warp_size,
                                     profile.register_granularity);
  const std::size_t shared = demand.shared_bytes + profile.shared_reserved_bytes;
  const unsigned by_threads = max_warps / warps;
  const unsigned by_registers = profile.registers_per_sm / (per_warp * warps);
  // A block without shared memory of its own is never kept out by the system's share.
  const std::size_t by_shared =
      demand.shared_bytes == 0 ? profile.max_blocks_per_sm : shared_limit_bytes / shared;
  return std::min({profile.max_blocks_per_sm, by_threads, by_registers,
                   static_cast<unsigned>(std::min<std::size_t>(by_shared, 1U << 16))});
}

std::size_t shared_configuration(const DeviceProfile& profile, const BlockDemand& demand,
                                 int carveout_percent) {
  const std::size_t one_block =
      demand.shared_bytes == 0 ? 0 : demand.shared_bytes + profile.shared_reserved_bytes;
  if (carveout_percent < 0) {
    const unsigned blocks = blocks_per_sm(profile, demand, profile.shared_per_sm_bytes);
    return at_least(std::max<std::size_t>(blocks, 1) * one_block);
  }
  const auto percent = static_cast<std::size_t>(std::min(carveout_percent, 100));
  return at_least(std::max(profile.shared_per_sm_bytes * percent / 100, one_block));
}

}  // namespace simcuda
