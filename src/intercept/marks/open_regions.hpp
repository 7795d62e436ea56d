#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace contextune::intercept {

class LaunchRegion;

/// Which regions are open anywhere in the process, and whether the frontend has to show launches at
/// all. Any thread.
class OpenRegions {
 public:
  /// @param armed the frontend's word, or null
  explicit OpenRegions(std::uint32_t* armed) : armed_(armed) {}

  /// A region that is always open, for launches that belong to no other: `process`.
  void set_background(LaunchRegion* region) noexcept;
  /// Launches are to be shown from now on even while nothing is open: `kernel:`.
  void watch_always() noexcept;
  void watch_no_more() noexcept;
  /// Launches are to be shown as well while a region is open that takes only those of NCCL.
  void want_launches(bool wanted) noexcept;
  [[nodiscard]] bool watches_always() const noexcept {
    return always_.load(std::memory_order_relaxed);
  }

  void add(LaunchRegion* region) noexcept;
  void remove(LaunchRegion* region) noexcept;

  /// The only open one; else, while none is open, the background; else null.
  [[nodiscard]] LaunchRegion* only() const noexcept {
    return only_.load(std::memory_order_acquire);
  }
  /// Whether null above means that there are several.
  [[nodiscard]] bool several() const noexcept { return several_.load(std::memory_order_relaxed); }

  /// No launch is shown any more.
  void shut() noexcept;

 private:
  void publish() noexcept;

  struct Open {
    LaunchRegion* region;
    std::uint32_t times;
  };
  std::uint32_t* armed_;
  std::mutex mutex_;
  std::vector<Open> open_;
  LaunchRegion* background_ = nullptr;
  std::atomic<bool> always_{false};
  bool shut_ = false;
  int wanted_ = 0;  ///< by want_launches()
  std::atomic<LaunchRegion*> only_{nullptr};
  std::atomic<bool> several_{false};
};

}  // namespace contextune::intercept
