#pragma once

#include "intercept/site/launch_region.hpp"
#include "intercept/tuner/search.hpp"

namespace contextune::intercept {

/// Makes a launch through the real driver under one config, and times it where the search wants
/// that. It launches as written in the same breath where the config cannot be launched. Shared by
/// the kinds of regions. Any thread.
class TrialLaunch {
 public:
  TrialLaunch(const LaunchRegion& region, const RegionServices& services, SiteTable& table)
      : region_(region), services_(services), table_(table) {}

  /// With the config that is settled; nothing is reported but a failure.
  /// @param search of the site; may be null for a launch that is no site
  [[nodiscard]] CUresult settled(const contextune_launch& call, const Launch& launch,
                                 const SiteTable::Found& found, std::uint32_t config,
                                 Search* search) noexcept;

  /// The same, of a search that has ended: the thread remembers it, if it can be told by its shape.
  /// @param version of what is settled, read before `found`
  [[nodiscard]] CUresult settled_for_good(const contextune_launch& call, const Launch& launch,
                                          const SiteTable::Found& found, std::uint32_t config,
                                          Search* search, std::uint64_t version) noexcept;

  /// In an entry that is watched.
  [[nodiscard]] CUresult watched(const contextune_launch& call, const Launch& launch,
                                 const SiteTable::Found& found, std::uint32_t config,
                                 Search& search, Watch watch) noexcept;

 private:
  struct Timed {
    CUresult result = CUDA_SUCCESS;
    std::uint32_t records = 0;
  };
  [[nodiscard]] Timed issue(const contextune_launch& call, const Launch& launch,
                            const Variant* variant, std::uint64_t tag, bool timed) noexcept;
  [[nodiscard]] const Variant* find_variant(const SiteTable::Found& found, std::uint32_t config,
                                            const Launch& launch) noexcept;
  [[nodiscard]] std::string why(const Site& site, std::uint32_t config, CUresult result) const;

  const LaunchRegion& region_;
  const RegionServices& services_;
  SiteTable& table_;
};

}  // namespace contextune::intercept
