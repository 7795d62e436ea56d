#pragma once

#include <cstdint>

#include "preload/contextune_abi.h"

namespace contextune::intercept {

/// The words that the frontend reads and writes: whether other calls of the driver are to be shown,
/// and whether all of them can be. Under the lock of whoever launches, but for `is_there`, `holds`
/// and `is_unguarded`.
class FrontendWords {
 public:
  /// @param frontend null: there is none
  explicit FrontendWords(const contextune_frontend* frontend)
      : held_(frontend == nullptr ? nullptr : frontend->held),
        unguarded_(frontend == nullptr ? nullptr : frontend->unguarded) {}

  [[nodiscard]] bool is_there() const noexcept { return held_ != nullptr; }
  /// Whether other calls are shown.
  [[nodiscard]] bool holds() const noexcept {
    return held_ != nullptr && __atomic_load_n(held_, __ATOMIC_ACQUIRE) != 0;
  }
  /// Whether some calls of the driver are not.
  [[nodiscard]] bool is_unguarded() const noexcept {
    return __atomic_load_n(unguarded_, __ATOMIC_RELAXED) != 0;
  }

  /// Whether other calls are to be shown for another's sake, too.
  void want(bool wanted) noexcept { is_wanted_ = wanted && held_ != nullptr && !is_stopped_; }
  /// @param needed for the sake of launches
  void publish(bool needed) noexcept {
    const auto any = static_cast<std::uint32_t>(needed || is_wanted_);
    if (__atomic_load_n(held_, __ATOMIC_RELAXED) != any)
      __atomic_store_n(held_, any, __ATOMIC_RELEASE);
  }

  /// Nothing is wanted any more.
  void stop() noexcept {
    is_stopped_ = true;
    is_wanted_ = false;
  }
  [[nodiscard]] bool is_stopped() const noexcept { return is_stopped_; }

 private:
  std::uint32_t* const held_;             ///< null: there is no frontend
  const std::uint32_t* const unguarded_;  ///< not 0: some calls of the driver do not hand over
  bool is_wanted_ = false;
  bool is_stopped_ = false;
};

}  // namespace contextune::intercept
