#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "intercept/graphs/graph_table.hpp"
#include "intercept/site/launch_region.hpp"
#include "intercept/tuner/search.hpp"

namespace contextune::intercept {

/// Launches of graphs in one region. Every kernel of a graph is a launch of a site of the region;
/// the instantiation that is launched is the one with just the configs that these are to run. Any
/// thread; nothing throws.
class GraphLaunches {
 public:
  /// The config that a site is to run.
  using ConfigOf = std::function<std::uint32_t(const Site&)>;
  class Sites;

  GraphLaunches(LaunchRegion& region, const RegionServices& services, SiteTable& table,
                Search& search);

  /// As the region's search wants it.
  [[nodiscard]] CUresult launch(const GraphCall& call, Watch watch) noexcept;

  /// Under that plan, reported to nobody. A graph that cannot be tuned runs as written.
  /// @param failed gets the sites whose config cannot be launched; they ran their default
  [[nodiscard]] CUresult launch_with(const GraphCall& call, const ConfigOf& config_of,
                                     std::vector<const Site*>& failed) noexcept;

  /// That variant went into a graph that is being captured: there it is what the program launches.
  void captured(const Variant& variant);

 private:
  struct Choice;
  struct Failed {
    std::size_t site = 0;
    std::uint32_t config = 0;
    std::string why;
  };

  [[nodiscard]] Sites* sites_of(KnownGraph& graph);
  [[nodiscard]] Choice choose(KnownGraph& graph, Sites& sites, std::vector<std::uint32_t> configs);
  [[nodiscard]] bool make(KnownGraph& graph, Sites& sites, Choice& choice);
  void find_culprits(KnownGraph& graph, const Sites& sites,
                     const std::vector<const Variant*>& variants, CUresult why, Choice& choice);
  /// @param made of a launch that was made: whatever throws later, it is not made again
  void issue(KnownGraph& graph, const GraphCall& call, Sites& sites, Choice& choice, Watch watch,
             std::optional<CUresult>& made);
  void issue_once(KnownGraph& graph, const GraphCall& call, const Sites& sites,
                  const Choice& choice, Watch watch, std::optional<CUresult>& made);
  [[nodiscard]] CUresult unknown(const GraphCall& call, Watch watch) noexcept;
  void report(const Sites& sites, const Choice& choice, Watch watch, std::uint64_t tag);
  [[nodiscard]] bool was_captured(const Launch& launch);
  [[nodiscard]] static std::string why(const Sites& sites, const Failed& failed);

  LaunchRegion& region_;
  const RegionServices& services_;
  SiteTable& table_;
  Search& search_;
  std::mutex mutex_;
  std::set<std::uint64_t> captured_;  ///< shapes
};

}  // namespace contextune::intercept
