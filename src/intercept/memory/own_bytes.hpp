#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>

namespace contextune::intercept {

/// The bytes that copies of ours take on each device, by its ordinal. Any thread.
class OwnBytes {
 public:
  /// @param bytes below 0: they are given back
  void add(int device, std::ptrdiff_t bytes) noexcept {
    if (device >= 0 && device < most_devices)
      on_device_[static_cast<std::size_t>(device)].fetch_add(bytes);
  }
  [[nodiscard]] std::size_t on(int device) const noexcept {
    if (device < 0 || device >= most_devices) return 0;
    return static_cast<std::size_t>(
        std::max<std::ptrdiff_t>(0, on_device_[static_cast<std::size_t>(device)].load()));
  }
  [[nodiscard]] bool any() const noexcept {
    return std::ranges::any_of(on_device_, [](const auto& bytes) { return bytes.load() > 0; });
  }

 private:
  static constexpr int most_devices = 64;

  std::array<std::atomic<std::ptrdiff_t>, most_devices> on_device_{};
};

}  // namespace contextune::intercept
