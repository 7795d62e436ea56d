#pragma once

#include <atomic>
#include <memory>

#include "intercept/graphs/graph_launches.hpp"
#include "intercept/regions/body_ranks.hpp"
#include "intercept/replay/region_replay.hpp"
#include "intercept/site/launch_region.hpp"
#include "intercept/tuner/search.hpp"
#include "intercept/tuner/trial_launch.hpp"
#include "intercept/tuner/trial_lookout.hpp"

namespace contextune::intercept {

/// A region whose entries are passes of one search. See Region.
class TunedRegion final : public LaunchRegion, private SiteOwner {
 public:
  /// The work that belongs to it: all, or collectives, of which the region's time says which are
  /// best.
  enum class Takes { All, Collectives };

  TunedRegion(std::string name, const Options& options, const RegionServices& services,
              const StoredAs& as, Takes takes = Takes::All);

  [[nodiscard]] bool finished() const noexcept override;
  [[nodiscard]] RegionOutcome outcome() const override { return search_.outcome(); }
  [[nodiscard]] bool is_repeated() const noexcept override { return repeated_; }
  void time_rows() override { search_.time_rows(); }
  [[nodiscard]] RegionRanks& ranks() noexcept override { return body_ranks_; }
  [[nodiscard]] bool begin_pass() noexcept override;
  bool end_pass() noexcept override;
  void abandon_pass() noexcept override;
  void give_up(FallbackReason reason, const std::string& text) noexcept override;
  [[nodiscard]] Site* tunable(const TunableSpec& spec) noexcept override;

  CUresult launch(const contextune_launch& call, bool counts) noexcept override;
  CUresult launch_graph(const GraphCall& call, bool counts) noexcept override;
  CUresult launch_graph_with(const GraphCall& call, const GraphLaunches::ConfigOf& config_of,
                             std::vector<const Site*>& failed) noexcept override {
    return graphs_.launch_with(call, config_of, failed);
  }
  [[nodiscard]] RegionCollectives* collectives() noexcept override { return collectives_.get(); }
  [[nodiscard]] bool is_measuring() const noexcept override {
    return search_.watch() == Watch::Span || search_.watch() == Watch::Activity;
  }
  void write_summary() noexcept override;
  void stop(FallbackReason reason, const std::string& text) noexcept override;
  void check_probation() noexcept override;
  void let_go() noexcept override;
  void forget_stream(StreamHandle stream) noexcept override;
  void forget_context(CUcontext context, bool gone) noexcept override;

 private:
  void entered(bool thread_bound) noexcept override;
  [[nodiscard]] bool pass_entry() noexcept override;
  void left() noexcept override;
  void close_entry(bool is_visited, bool has_looked) noexcept;
  void abandoned() noexcept override;
  [[nodiscard]] bool is_tuned() override;
  [[nodiscard]] bool has_winner(const Site& site) override;
  void adopt(Site& site, SiteSpec spec, const log::SiteFacts& facts,
             std::span<const std::uint32_t> unusable) override;
  void ready(Site& site, std::span<const std::uint32_t> unusable) override;
  /// A visit is not recorded: the store is thought to know what is in it.
  [[nodiscard]] bool looks_first() noexcept;
  /// False: work of the GPU has not ended within trial_timeout.
  [[nodiscard]] bool gpu_is_done();
  /// The same, and variants that are being built are waited for.
  [[nodiscard]] bool synchronise();
  CUresult launch_captured(const contextune_launch& call, const Launch& launch,
                           const SiteTable::Found& found) noexcept;
  CUresult launch_in_collective(const contextune_launch& call, const Launch& launch,
                                Watch watch) noexcept;
  CUresult launch_in_call(const contextune_launch& call, const Launch& launch,
                          TunableCall& tunable) noexcept;

  const bool repeated_;
  const bool flush_l2_;
  const Options options_;
  Search search_;
  SiteTable table_;
  TrialLaunch trial_;
  TrialLookout lookout_;
  GraphLaunches graphs_;
  std::unique_ptr<RegionCollectives> collectives_;  ///< null: NCCL is not seen
  BodyRanks body_ranks_;
  std::unique_ptr<RegionReplay> replay_;  ///< null: not to be replayed
  std::atomic<bool> looks_{false};        ///< the entry under way is not replayed for it
};

}  // namespace contextune::intercept
