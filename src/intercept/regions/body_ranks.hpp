#pragma once

#include <atomic>
#include <optional>

#include "intercept/collectives/region_collectives.hpp"
#include "intercept/site/launch_region.hpp"
#include "intercept/site/region_ranks.hpp"
#include "intercept/tuner/search.hpp"

namespace contextune::intercept {

/// The ranks that repeat a region's body together: found before its first pass, by one run of the
/// body where its communicators tell. Passes are one thread's.
class BodyRanks final : public RegionRanks {
 public:
  /// @param collectives the region's; null: NCCL is not seen
  BodyRanks(LaunchRegion& region, Search& search, RegionCollectives* collectives,
            const Options& options)
      : region_(region), search_(search), collectives_(collectives), options_(options) {}

  [[nodiscard]] Answer ask(const std::function<bool()>& is_ready, std::string& why) override;
  void repeat_together(std::span<const std::uint32_t> ranks) noexcept override;
  [[nodiscard]] std::string why_untuned() override { return search_.ranks().why_untuned(); }

  /// Whether the body may be run more than once.
  [[nodiscard]] bool may_repeat() noexcept;

  enum class Before { Pass, Look, Nothing };
  /// Ranks that wait elsewhere need not wait for this one until leave(). Tells what comes next: a
  /// pass, a run of the body that shows its communicators, or nothing, as the body is not repeated.
  [[nodiscard]] Before come() noexcept;
  void leave() noexcept;
  /// The body has run. Absent: not to show its communicators. Else whether it is repeated.
  [[nodiscard]] std::optional<bool> end_look() noexcept;
  /// The body was left early.
  void abandon_look();

 private:
  /// Which ranks are to repeat the body with this one, where not all of the job may come to it.
  /// @return false: it is not repeated
  [[nodiscard]] bool find(const std::vector<const void*>& used, bool has_looked);
  [[nodiscard]] bool guarded_find(bool has_looked) noexcept;
  [[nodiscard]] RankGroups& groups() const { return region_.services().ranks.groups(); }

  LaunchRegion& region_;
  Search& search_;
  RegionCollectives* const collectives_;
  const Options& options_;
  bool together_ = false;               ///< they are known
  bool looks_ = false;                  ///< the body runs once, to show its communicators
  std::atomic<bool> has_place_{false};  ///< other ranks are told that this one is here
};

}  // namespace contextune::intercept
