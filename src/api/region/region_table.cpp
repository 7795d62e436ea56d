#include "api/region/region_table.hpp"

#include <functional>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace contextune::api {
namespace {

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept {
    return std::hash<std::string_view>{}(text);
  }
};

struct OnDevice {
  int device;
  intercept::Region* region;
};

/// Never destroyed: regions are entered until the process is gone.
struct Table {
  std::shared_mutex mutex;
  std::unordered_map<std::string, std::vector<OnDevice>, TextHash, std::equal_to<>> regions;
};

Table& kept_regions() {
  static auto* const kept = new Table;
  return *kept;
}

intercept::Region* find_locked(const Table& kept, std::string_view name, int device) {
  const auto found = kept.regions.find(name);
  if (found == kept.regions.end()) return nullptr;
  for (const OnDevice& entry : found->second) {
    // Before a context is current the device is not known, and the first is as good as any.
    if (entry.device == device || device < 0) return entry.region;
  }
  return nullptr;
}

}  // namespace

intercept::Region* find_region(std::string_view name, int device) noexcept {
  Table& kept = kept_regions();
  const std::shared_lock lock(kept.mutex);
  return find_locked(kept, name, device);
}

intercept::Region& make_region(intercept::Runtime& runtime, std::string_view name, int device,
                               const Options& author, const StoredAs& as) {
  Table& kept = kept_regions();
  const std::unique_lock lock(kept.mutex);
  if (intercept::Region* found = find_locked(kept, name, device)) return *found;
  std::string full_name(name);
  if (const auto others = kept.regions.find(name); others != kept.regions.end()) {
    for (OnDevice& entry : others->second) {
      if (entry.device < 0) {
        entry.device = device;
        return *entry.region;
      }
    }
    full_name += "@device" + std::to_string(device);
  }
  intercept::Region& region = runtime.region(full_name, author, as);
  kept.regions[std::string(name)].push_back({device, &region});
  return region;
}

}  // namespace contextune::api
