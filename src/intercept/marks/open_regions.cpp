#include "intercept/marks/open_regions.hpp"

#include <algorithm>

#include "intercept/host/hot_words.hpp"

namespace contextune::intercept {

void OpenRegions::publish() noexcept {
  LaunchRegion* only = open_.empty() ? background_ : nullptr;
  if (open_.size() == 1) only = open_.front().region;
  only_.store(only, std::memory_order_release);
  several_.store(open_.size() > 1, std::memory_order_relaxed);
  const bool any = background_ != nullptr || !open_.empty();
  hot_words.any_region.store(any, std::memory_order_release);
  if (armed_ == nullptr) return;
  const bool wanted = !shut_ && (always_ || any || wanted_ > 0);
  std::atomic_ref<std::uint32_t>(*armed_).store(wanted ? 1 : 0, std::memory_order_release);
}

void OpenRegions::set_background(LaunchRegion* region) noexcept {
  const std::lock_guard lock(mutex_);
  background_ = region;
  publish();
}

void OpenRegions::watch_always() noexcept {
  const std::lock_guard lock(mutex_);
  always_ = true;
  publish();
}

void OpenRegions::watch_no_more() noexcept {
  const std::lock_guard lock(mutex_);
  always_ = false;
  publish();
}

void OpenRegions::want_launches(bool wanted) noexcept {
  const std::lock_guard lock(mutex_);
  wanted_ += wanted ? 1 : -1;
  publish();
}

void OpenRegions::add(LaunchRegion* region) noexcept {
  const std::lock_guard lock(mutex_);
  const auto place = std::find_if(open_.begin(), open_.end(),
                                  [&](const Open& one) { return one.region == region; });
  if (place != open_.end()) {
    ++place->times;
    return;
  }
  try {
    open_.push_back({region, 1});
  } catch (...) {
    return;  // no memory: launches of this region run as written
  }
  publish();
}

void OpenRegions::remove(LaunchRegion* region) noexcept {
  const std::lock_guard lock(mutex_);
  const auto place = std::find_if(open_.begin(), open_.end(),
                                  [&](const Open& one) { return one.region == region; });
  if (place == open_.end() || --place->times != 0) return;
  open_.erase(place);
  publish();
}

void OpenRegions::shut() noexcept {
  const std::lock_guard lock(mutex_);
  shut_ = true;
  publish();
}

}  // namespace contextune::intercept
