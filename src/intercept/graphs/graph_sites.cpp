#include "intercept/graphs/graph_sites.hpp"

#include <algorithm>
#include <map>

namespace contextune::intercept {
namespace {

/// Positions in work.kernels of one shape, in the order of the graph.
using Group = std::vector<std::size_t>;

bool has_several_sites(const GraphWork& work, const Group& group) {
  return std::any_of(group.begin(), group.end(), [&](std::size_t at) {
    return work.kernels[at].site != work.kernels[group.front()].site;
  });
}

/// Whether the graph lets them run in that order only.
bool is_ordered(const GraphNodes& nodes, const Group& group) {
  for (std::size_t i = 0; i + 1 < group.size(); ++i) {
    if (group[i + 1] >= nodes.kernels().size()) return false;  // of a child graph
    if (!nodes.ordered(group[i], group[i + 1])) return false;
  }
  return true;
}

}  // namespace

std::shared_ptr<const GraphWork> work_of(const gpu::Driver& driver, const GraphNodes& nodes,
                                         const std::vector<SiteIndex>& sites,
                                         const std::vector<const Variant*>& variants) {
  auto work = std::make_shared<GraphWork>();
  const auto written = [&](const GraphKernel& kernel) {
    CUlaunchConfig config;
    const Launch launch = kernel.launch(config);
    return shape_of(driver, launch.function, launch.grid, launch.block, launch.shared_bytes);
  };
  std::map<SiteIndex, std::uint32_t> launches;
  for (std::size_t i = 0; i < nodes.kernels().size(); ++i) {
    const Variant* variant = variants[i];
    const std::uint64_t shape = variant == nullptr
                                    ? written(nodes.kernels()[i])
                                    : shape_of(driver, variant->function, variant->grid,
                                               variant->block, variant->shared_bytes);
    work->kernels.push_back({shape, sites[i]});
    if (sites[i] != no_site) ++launches[sites[i]];
  }
  for (const GraphKernel& kernel : nodes.inner_kernels()) {
    work->kernels.push_back({written(kernel), no_site});
  }
  for (const auto& [site, count] : launches) work->sites.push_back({site, count});
  std::map<std::uint64_t, Group> groups;
  for (std::size_t i = 0; i < work->kernels.size(); ++i) {
    groups[work->kernels[i].shape].push_back(i);
  }
  for (const auto& [shape, group] : groups) {
    if (has_several_sites(*work, group) && !is_ordered(nodes, group)) work->tied.insert(shape);
  }
  return work;
}

std::shared_ptr<const GraphWork> without(const GraphWork& work,
                                         const std::vector<SiteIndex>& omitted) {
  auto rest = std::make_shared<GraphWork>(work);
  const auto is_omitted = [&](SiteIndex site) {
    return std::find(omitted.begin(), omitted.end(), site) != omitted.end();
  };
  for (GraphWork::Kernel& kernel : rest->kernels) {
    if (is_omitted(kernel.site)) kernel.site = no_site;
  }
  std::erase_if(rest->sites, [&](const auto& site) { return is_omitted(site.site); });
  return rest;
}

}  // namespace contextune::intercept
