#include "intercept/collectives/collective_regions.hpp"

#include <algorithm>

#include "intercept/collectives/region_collectives.hpp"

namespace contextune::intercept {

bool CollectiveRegions::add(RegionCollectives& region) {
  for (auto& place : regions_) {
    RegionCollectives* nobody = nullptr;
    if (place.compare_exchange_strong(nobody, &region, std::memory_order_acq_rel)) return true;
  }
  return false;
}

bool CollectiveRegions::is_of_another(const collective::LeaseKey& key,
                                      const RegionCollectives& region) const noexcept {
  return std::any_of(regions_.begin(), regions_.end(), [&](const auto& one) {
    const RegionCollectives* const other = one.load(std::memory_order_acquire);
    return other != nullptr && other != &region && other->has(key);
  });
}

RegionCollectives* CollectiveRegions::forbidding(std::uint32_t decisions) const noexcept {
  if (!any_holds()) return nullptr;
  for (const auto& one : regions_) {
    RegionCollectives* const region = one.load(std::memory_order_acquire);
    if (region != nullptr && !region->permits(decisions)) return region;
  }
  return nullptr;
}

void CollectiveRegions::forget(std::uint64_t context) noexcept {
  for (const auto& one : regions_)
    if (RegionCollectives* const region = one.load(std::memory_order_acquire))
      region->forget(context);
}

}  // namespace contextune::intercept
