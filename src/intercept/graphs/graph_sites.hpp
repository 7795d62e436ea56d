#pragma once

#include <set>
#include <utility>
#include <vector>

#include "intercept/graphs/graph_launches.hpp"

namespace contextune::intercept {

/// The sites of one graph's kernels in one region: `site_of` leads from a kernel to its place in
/// `sites`.
class GraphLaunches::Sites final : public GraphInRegion {
 public:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  std::uint64_t epoch = 0;  ///< of the kernel table, when this was found out
  std::vector<Launch> launches;
  std::vector<SiteTable::Found> found;
  std::vector<std::size_t> site_of;
  std::vector<Site*> sites;                                 ///< each once
  std::set<std::pair<std::size_t, std::uint32_t>> refused;  ///< configs that cannot be launched
  std::shared_ptr<const GraphWork> own;                     ///< of the program's instantiation
  bool trimmed = false;  ///< only the winners' instantiation is left

  [[nodiscard]] std::vector<std::uint32_t> configs(const ConfigOf& config_of) const {
    std::vector<std::uint32_t> all;
    all.reserve(sites.size());
    for (const Site* site : sites) all.push_back(config_of(*site));
    return all;
  }
};

/// The work of an instantiation in which `variants[i]`, unless null, replaces the i-th kernel.
[[nodiscard]] std::shared_ptr<const GraphWork> work_of(const gpu::Driver& driver,
                                                       const GraphNodes& nodes,
                                                       const std::vector<SiteIndex>& sites,
                                                       const std::vector<const Variant*>& variants);

/// The same without the sites in `omitted`: their kernels are nobody's.
[[nodiscard]] std::shared_ptr<const GraphWork> without(const GraphWork& work,
                                                       const std::vector<SiteIndex>& omitted);

}  // namespace contextune::intercept
