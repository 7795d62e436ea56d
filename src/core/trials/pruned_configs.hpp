#pragma once

#include <cstdint>

namespace contextune {

/// How many configs of one problem were ruled out before anything was measured, and by whom. For
/// the log.
struct PrunedConfigs {
  std::uint32_t by_device = 0;
  std::uint32_t by_kernel = 0;
  std::uint32_t by_author = 0;
  std::uint32_t failed = 0;  ///< could not be launched

  [[nodiscard]] std::uint32_t all() const noexcept {
    return by_device + by_kernel + by_author + failed;
  }
};

}  // namespace contextune
