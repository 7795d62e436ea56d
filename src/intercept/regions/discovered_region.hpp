#pragma once

#include <deque>
#include <mutex>
#include <vector>

#include "intercept/graphs/graph_table.hpp"
#include "intercept/site/launch_region.hpp"

namespace contextune::intercept {

/// A region that only looks (`discover`): every launch is timed and runs as written. The times of
/// each kernel go into the rank log as running sums, at ends of entries and at the end.
class DiscoveredRegion final : public LaunchRegion, private SiteOwner {
 public:
  DiscoveredRegion(std::string name, const RegionServices& services);

  [[nodiscard]] bool finished() const noexcept override { return true; }
  CUresult launch(const contextune_launch& call, bool counts) noexcept override;
  CUresult launch_graph(const GraphCall& call, bool) noexcept override {
    return services().graphs.as_written(call);
  }
  CUresult launch_graph_with(const GraphCall& call,
                             const std::function<std::uint32_t(const Site&)>&,
                             std::vector<const Site*>&) noexcept override {
    return services().graphs.as_written(call);
  }
  void write_summary() noexcept override;
  void stop(FallbackReason reason, const std::string& text) noexcept override;
  void synchronised() noexcept override;

 private:
  /// Launches of one kernel in one shape.
  struct Seen {
    const KnownKernel* kernel = nullptr;
    LaunchKey shape;
    std::uint64_t launches = 0;
    std::uint64_t timed = 0;
    double seconds = 0;
  };

  void entered(bool) noexcept override {}
  void left() noexcept override;
  void adopt(Site&, SiteSpec, const log::SiteFacts&, std::span<const std::uint32_t>) override {}
  void ready(Site&, std::span<const std::uint32_t>) override {}
  [[nodiscard]] std::uint64_t count(Binding& binding, const Launch& launch);
  void collect();
  /// @param all also those of which no time has come yet
  void write_kernels(bool all);

  SiteTable table_;
  const std::uint16_t search_;
  std::atomic<bool> wanted_{false};
  std::atomic<std::size_t> unread_launches_{0};
  std::mutex mutex_;
  std::deque<Seen> seen_;
  std::vector<TimedWork> work_;
  double last_written_ = 0;
  bool changed_ = false;
};

}  // namespace contextune::intercept
