#pragma once

#include <cstdint>
#include <vector>

#include <contextune/options.hpp>

#include "core/agreement/companions.hpp"
#include "core/agreement/domain_planner.hpp"
#include "intercept/ranks/process_ranks.hpp"

namespace contextune::intercept {

/// The ranks with which one region is tuned: all of the job, unless the program has communicators
/// of some of them. Then it is those that have to do with this rank in the region, which rank 0
/// finds out.
class RegionCompanions final : public CompanionSource {
 public:
  /// @param settings of the region, with the number that all ranks have for it as its group
  RegionCompanions(ProcessRanks& ranks, SharedTuningSettings settings, const Options& options);
  [[nodiscard]] bool may_be_any() override { return ranks_.may_have_others(); }
  [[nodiscard]] bool are_certain() override {
    return distributed_ == Distributed::On || ranks_.are_certain();
  }
  void limit_to(std::span<const std::uint32_t> ranks) override {
    members_.assign(ranks.begin(), ranks.end());
  }
  [[nodiscard]] Companions find(std::span<const DecisionStanding> used, std::uint64_t entries,
                                bool bounded, double now) override;
  [[nodiscard]] Companions leave(std::span<const DecisionStanding> used, bool bounded) override;

 private:
  [[nodiscard]] DomainReport report_of(std::span<const DecisionStanding> used) const;
  void ask(const DomainReport& report);
  [[nodiscard]] bool are_sought(const Companions& found, bool bounded) const;
  [[nodiscard]] Companions all_of_job(std::span<const DecisionStanding> used, bool bounded);

  ProcessRanks& ranks_;
  const SharedTuningSettings settings_;
  const Distributed distributed_;
  const Scope scope_;
  std::vector<std::uint32_t> members_;  ///< as limit_to has it; empty: not known
  Coordinator* coordinator_ = nullptr;  ///< that was asked
  Topic topic_;
  bool asked_ = false;
  std::uint64_t ask_again_ = 0;  ///< at this entry
  std::uint64_t pause_ = 1;      ///< entries until then
  double asked_first_ = 0;       ///< when; 0: not yet
};

}  // namespace contextune::intercept
