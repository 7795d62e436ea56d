#pragma once

#include <cuda.h>

#include <compare>
#include <cstdint>

namespace contextune::intercept {

/// A stream of launches as it is told apart from others: default streams by their special handles.
struct LaunchStream {
  CUcontext context = nullptr;
  CUstream handle = nullptr;
  std::uint64_t thread = 0;  ///< that a per-thread default stream belongs to

  bool operator==(const LaunchStream&) const = default;
  auto operator<=>(const LaunchStream&) const = default;

  /// Whether a launch here may have to come after what was on `other`: the legacy stream waits for
  /// others, and they for it.
  [[nodiscard]] bool waits_for(const LaunchStream& other) const noexcept {
    return *this == other || handle == CU_STREAM_LEGACY || other.handle == CU_STREAM_LEGACY;
  }
};

}  // namespace contextune::intercept
