#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/value/kernel_rule.hpp"
#include "gpu/image/kernel_identity.hpp"

namespace contextune::gpu {

/// The size of a launch, as far as it decides where blocks find room.
struct LaunchSize {
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::size_t shared_bytes = 0;  ///< dynamic

  [[nodiscard]] std::uint64_t blocks() const noexcept {
    return std::uint64_t{grid[0]} * grid[1] * grid[2];
  }
  [[nodiscard]] std::uint64_t threads() const noexcept {
    return std::uint64_t{block[0]} * block[1] * block[2];
  }
};

/// Stream priorities of the current context: `least` is the larger number, 0 to 0 if there are
/// none.
struct PriorityRange {
  int least = 0;
  int greatest = 0;
};

/// The facts of the device for work on that stream, with the SMs that it may use. A green context,
/// or one made with an affinity for SMs, has only some of them. For default streams, the SMs of the
/// current context count.
[[nodiscard]] DeviceFacts facts_on(const Driver& driver, const DeviceFacts& device,
                                   CUstream stream);

/// How many blocks of that size one SM holds at a time; 0 if it holds none or the driver cannot
/// tell.
[[nodiscard]] int blocks_per_sm(const Driver& driver, const KernelIdentity& kernel,
                                const LaunchSize& launch) noexcept;

/// How many blocks of that size the device holds at a time, in clusters if the launch or the kernel
/// asks for them. 0: it holds none, or the driver cannot tell.
/// @param device as of facts_on, here and below
[[nodiscard]] std::uint64_t resident_blocks(
    const Driver& driver, const DeviceFacts& device, const KernelIdentity& kernel,
    const LaunchSize& launch, const std::array<std::uint32_t, 3>& launch_cluster) noexcept;

/// Whether all blocks can be resident at once.
[[nodiscard]] bool fits_in_one_wave(const Driver& driver, const DeviceFacts& device,
                                    const KernelIdentity& kernel,
                                    const LaunchSize& launch) noexcept;

/// Whether `changed` may replace `written` as far as residency goes. If all blocks of `written`
/// were resident at once (it may wait for its own blocks) or it was cooperative, those of `changed`
/// must be, too.
[[nodiscard]] bool keeps_co_residency(const Driver& driver, const DeviceFacts& device,
                                      const KernelIdentity& kernel, const LaunchSize& written,
                                      const LaunchSize& changed, bool cooperative) noexcept;

/// The most dynamic shared memory that a block of this kernel can ask for on the device.
[[nodiscard]] std::size_t max_dynamic_shared_bytes(const DeviceFacts& device,
                                                   const KernelIdentity& kernel) noexcept;

/// Lets the kernel be launched with that much dynamic shared memory; never lowers what the program
/// has set. False: the driver refuses.
[[nodiscard]] bool allow_dynamic_shared(const Driver& driver, KernelIdentity& kernel,
                                        std::size_t bytes) noexcept;

/// Shared memory carve-outs worth trying, in percent, from the smallest that still holds one block.
[[nodiscard]] std::vector<int> carveout_percentages(const DeviceFacts& device,
                                                    const KernelIdentity& kernel,
                                                    std::size_t dynamic_shared_bytes);

[[nodiscard]] PriorityRange priority_range(const Driver& driver) noexcept;

/// Whether a cluster scheduling preference can matter: only where blocks come in clusters.
[[nodiscard]] bool has_clusters(const KernelIdentity& kernel,
                                const std::array<std::uint32_t, 3>& launch_cluster) noexcept;

}  // namespace contextune::gpu
