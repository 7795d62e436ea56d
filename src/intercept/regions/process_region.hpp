#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>

#include "core/search/tuning.hpp"
#include "intercept/graphs/graph_table.hpp"
#include "intercept/site/launch_region.hpp"
#include "intercept/tuner/search.hpp"
#include "intercept/tuner/trial_launch.hpp"
#include "intercept/tuner/trial_lookout.hpp"

namespace contextune::intercept {

/// The whole process as a region without entries (`process`). Every site is a search of its own,
/// and each launch of it a pass. Decisions made by the region's time elsewhere (refine, confirm)
/// are made on windows of the site's launches. It takes the launches that belong to no other
/// region.
class ProcessRegion final : public LaunchRegion, private SiteOwner {
 public:
  ProcessRegion(std::string name, const Options& options, const RegionServices& services);

  [[nodiscard]] bool finished() const noexcept override;
  CUresult launch(const contextune_launch& call, bool counts) noexcept override;
  CUresult launch_graph(const GraphCall& call, bool) noexcept override {
    return services().graphs.as_written(call);
  }
  CUresult launch_graph_with(const GraphCall& call,
                             const std::function<std::uint32_t(const Site&)>&,
                             std::vector<const Site*>&) noexcept override {
    return services().graphs.as_written(call);
  }
  [[nodiscard]] bool leaves_graphs() const noexcept override { return true; }
  void saw_collective() noexcept override;
  void check_probation() noexcept override;
  void write_summary() noexcept override;
  void forget_context(CUcontext context, bool gone) noexcept override;
  void stop(FallbackReason reason, const std::string& text) noexcept override;

 private:
  /// A site's search and the window that is open in it.
  struct Window {
    /// Each rank alone: sites come up in no order that ranks share.
    Window(const std::string& region, const TuningOptions& options, const Judging& judging,
           const RegionServices& services, double trial_timeout)
        : search(region,
                 [&](TuningObserver& observer, bool) {
                   return std::make_unique<Tuning>(options, &observer);
                 },
                 RegionClock::Work, judging, services.measurement, services.store, services.log,
                 StoredAs{}, {1, options.n_warmup, options.n_repeat}),
          lookout(search, services, trial_timeout) {}
    Search search;
    TrialLookout lookout;
    std::atomic<bool> busy{false};       ///< a thread is between begin and end of a launch
    std::uint32_t left = 0;              ///< launches until the window closes; 0: none is open
    std::atomic<bool> suspected{false};  ///< suspects of it are to be tried, in its turn
    double seen = 0;                     ///< its last launch while there were any; by mutex_
  };

  void entered(bool) noexcept override {}
  void left() noexcept override {}
  void adopt(Site& site, SiteSpec spec, const log::SiteFacts& facts,
             std::span<const std::uint32_t> unusable) override;
  void ready(Site& site, std::span<const std::uint32_t> unusable) override;
  /// While there are suspects, only the first site that has some makes passes, once the others'
  /// trials have ended: whatever happens then, it is known which config did it.
  /// @return false: the site runs what it has settled on
  [[nodiscard]] bool may_begin(Window& window, double now);
  void queue(Window& window, double now);  ///< by mutex_, as the next
  void next_turn(double now);
  CUresult launch_site(const contextune_launch& call, const Launch& launch,
                       const SiteTable::Found& found, Window& window,
                       std::uint64_t version) noexcept;
  CUresult launch_in_window(const contextune_launch& call, const Launch& launch,
                            const SiteTable::Found& found, Window& window) noexcept;

  const TuningOptions options_;
  const Judging judging_;
  const double trial_timeout_;
  SiteTable table_;
  TrialLaunch trial_;
  std::atomic<bool> said_collectives_{false};
  mutable std::mutex mutex_;
  std::deque<Window> windows_;
  std::atomic<bool> any_suspected_{false};
  std::deque<Window*> suspected_;  ///< the first has its turn; by mutex_, as when it began
  double turn_began_ = 0;
};

}  // namespace contextune::intercept
