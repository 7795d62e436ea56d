#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "intercept/host/hot_words.hpp"
#include "intercept/program/launch.hpp"
#include "intercept/program/variant.hpp"

namespace contextune::intercept {

class LaunchRegion;

/// Grows whenever anything changes that a settled launch depends on: a site's config, what is to be
/// watched, which kernel a handle means, a capture that begins, the end of all tuning. The process
/// has a single one, since a launch has time for one look only.
inline constexpr std::atomic<std::uint64_t>& settled_version = hot_words.settled_version;
inline void settled_changed() noexcept {
  settled_version.fetch_add(1, std::memory_order_release);
}

/// A launch that the slow way found settled, as the program makes it and as it is to be made.
struct alignas(64) SettledLaunch {
  std::uint64_t version = 0;  ///< 0: there is none here
  const LaunchRegion* region = nullptr;
  CUcontext context = nullptr;  ///< to be current; null: there is one device, any will do
  CUfunction function = nullptr;
  contextune_fn fn{};
  std::uint32_t shape[7] =
      {};  ///< grid, block, dynamic shared memory: as contextune_launch has them

  decltype(&cuLaunchKernel) launch = nullptr;  ///< null: as the program wrote it
  CUfunction settled_function = nullptr;
  std::uint32_t settled_shape[7] = {};

  [[nodiscard]] CUresult issue(const contextune_launch& call) const noexcept {
    const std::uint32_t* to = settled_shape;
    return launch(settled_function, to[0], to[1], to[2], to[3], to[4], to[5], to[6], call.stream,
                  call.kernel_params, call.extra);
  }
};

/// The launches of one thread at settled sites, as they are to be made, found again with one look
/// at anything that threads share. Behind the driver, which takes the caches for itself, that is
/// half of what a launch in a tuned region costs. Holds launches whose arguments do not matter and
/// that carry no attributes. Trivially destructible; not thread-safe.
class SettledLaunches {
 public:
  /// Null: go the slow way.
  [[nodiscard]] const SettledLaunch* find(const contextune_launch& call,
                                          const LaunchRegion* region) const noexcept {
    const SettledLaunch& known = launches_[place_of(call)];
    const bool same = known.version == settled_version.load(std::memory_order_acquire) &&
                      known.region == region && known.function == call.function &&
                      known.fn == call.fn &&
                      std::memcmp(known.shape, call.grid, sizeof known.shape) == 0 &&
                      (call.config == nullptr || call.config->numAttrs == 0);
    return same ? &known : nullptr;
  }

  /// @param version read before anything was found out about the launch
  /// @param variant null: as written; else without attributes
  /// @param launch  the driver's cuLaunchKernel for the call's default streams
  void remember(const contextune_launch& call, const LaunchRegion* region, CUcontext context,
                std::uint64_t version, const Variant* variant,
                decltype(&cuLaunchKernel) launch) noexcept;

 private:
  static constexpr std::size_t most = 32;

  [[nodiscard]] static std::size_t place_of(const contextune_launch& call) noexcept {
    const auto handle = reinterpret_cast<std::uintptr_t>(call.function);
    const std::uint64_t mixed =
        (handle ^ (std::uint64_t{call.grid[0]} << 20U) ^ call.block[0]) * 0x9e3779b97f4a7c15ULL;
    return mixed >> 59U;
  }

  SettledLaunch launches_[most];
};

}  // namespace contextune::intercept
