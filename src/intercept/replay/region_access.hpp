#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "gpu/memory/footprint.hpp"
#include "intercept/recording/recording.hpp"
#include "intercept/site/launch_region.hpp"

namespace contextune::intercept {

/// The memory that a recorded region uses, as far as the code of its kernels shows. A value.
struct RegionAccess {
  struct OfSite {
    std::vector<gpu::MemoryRange> memory;  ///< that its arguments point to
    std::vector<gpu::MemoryRange> written;
    std::string unknown;  ///< why it may write more than that, as a clause; "": it does not
    /// Configs that launch another function, whose code does not show what it does.
    std::set<std::uint32_t> unknown_configs;
    /// The part of `free` that comes to nothing that the site reads: a function that computes what
    /// the default does runs as before whatever is there.
    std::vector<gpu::MemoryRange> never_read;
  };

  /// Why `free` is empty, as a clause that begins with what it is about; "": it is all there is.
  std::string unknown;
  /// Memory that the region writes, as whole allocations, and of which it makes no address, no
  /// branch and no part of either. With whatever bytes there, the region runs to its end as before.
  std::vector<gpu::MemoryRange> free;  ///< ascending
  bool reads_free = false;  ///< of that, some is read as well, so that the result depends on it
  std::map<const Site*, OfSite> sites;
};

/// On the thread that recorded, with the context current and all variants there.
[[nodiscard]] RegionAccess find_access(const LaunchRegion& region, SiteTable& table,
                                       const Recording& recording);

}  // namespace contextune::intercept
