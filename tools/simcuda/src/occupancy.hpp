#pragma once

#include <cstddef>

#include "device_profile.hpp"

namespace simcuda {

/// What a block asks an SM for.
struct BlockDemand {
  unsigned threads = 0;
  unsigned registers_per_thread = 0;
  std::size_t shared_bytes = 0;  // static and dynamic together
};

/// How many blocks of a kind are resident on one SM at a time, by threads, registers, shared memory
/// (at most `shared_limit_bytes`) and the number of blocks; 0 when not even one fits.
[[nodiscard]] unsigned blocks_per_sm(const DeviceProfile& profile, const BlockDemand& demand,
                                     std::size_t shared_limit_bytes);

/// Shared memory that an SM sets aside: the smallest supported amount that holds the percentage
/// asked for (-1: as many blocks as would fit anyway), never less than one block needs.
[[nodiscard]] std::size_t shared_configuration(const DeviceProfile& profile,
                                               const BlockDemand& demand, int carveout_percent);

}  // namespace simcuda
