#pragma once

#include <cuda.h>

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace contextune::intercept {

/// The contexts that the program has made or holds. Work in one of them is not waited for in
/// another, and memory of pools and mapped memory belong to none. Any thread; nothing throws.
class ContextTable {
 public:
  void made(CUcontext context, CUdevice device) noexcept {
    if (context == nullptr) return;
    const std::lock_guard lock(mutex_);
    try {
      devices_[context] = device;
    } catch (const std::exception&) {
      lost_ = true;
    }
  }
  /// The primary one of a device, whoever holds it.
  void holds_primary(CUcontext context, CUdevice device) noexcept {
    made(context, device);
    const std::lock_guard lock(mutex_);
    try {
      primaries_[device] = context;
    } catch (const std::exception&) {
      // No memory: its events are found out to be lost later.
    }
  }
  /// Null: the program never held it.
  [[nodiscard]] CUcontext primary_of(CUdevice device) const noexcept {
    const std::lock_guard lock(mutex_);
    const auto place = primaries_.find(device);
    return place != primaries_.end() ? place->second : nullptr;
  }
  void gone(CUcontext context) noexcept {
    const std::lock_guard lock(mutex_);
    devices_.erase(context);
  }
  /// Whether there is another one on the device of that one, or may be.
  [[nodiscard]] bool has_other(CUcontext than, CUdevice device) const noexcept {
    const std::lock_guard lock(mutex_);
    return lost_ || std::any_of(devices_.begin(), devices_.end(), [&](const auto& one) {
             return one.first != than && one.second == device;
           });
  }
  /// All of them; absent: one may be missing.
  [[nodiscard]] std::optional<std::vector<CUcontext>> all() const {
    const std::lock_guard lock(mutex_);
    if (lost_) return std::nullopt;
    std::vector<CUcontext> contexts;
    for (const auto& [context, device] : devices_) contexts.push_back(context);
    return contexts;
  }

 private:
  mutable std::mutex mutex_;
  std::map<CUcontext, CUdevice> devices_;
  std::map<CUdevice, CUcontext> primaries_;
  bool lost_ = false;  ///< no memory: one is not in `devices_`
};

}  // namespace contextune::intercept
