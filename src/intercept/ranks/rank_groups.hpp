#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <contextune/options.hpp>

#include "core/coordination/lockstep.hpp"
#include "intercept/ranks/communicator_members.hpp"
#include "intercept/ranks/rank_group.hpp"

namespace contextune::intercept {

class ProcessRanks;

/// The groups of ranks of the job that do something together with this one, and the steps that they
/// make for it. Any thread; waits for nobody where it does not say so.
class RankGroups {
 public:
  /// @param ranks outlives it
  explicit RankGroups(ProcessRanks& ranks) : ranks_(ranks) {}

  /// As JobRanks has it.
  [[nodiscard]] RankGroup members(const void* communicator, std::uint32_t ranks,
                                  const Options& options);
  [[nodiscard]] RankGroup named(std::vector<std::uint32_t> ranks, const Options& options);
  void announce_communicators() noexcept;

  /// Whether ranks of the job may be at a region which others of it do not come to.
  [[nodiscard]] bool may_differ(const Options& options) noexcept;
  /// The ranks of the job that repeat a region with this one. Waits for them, at most
  /// presync_timeout.
  /// @param used communicators that its body was seen to use: their ranks. None: those that come to
  ///             it, where all of the job are tuned together, else this one
  [[nodiscard]] RankGroup ranks_at(const std::string& region, std::span<const void* const> used,
                                   const Options& options);
  /// This rank has begun to repeat the body of that region, or does so no longer: ranks that wait
  /// in other ones need not wait for it.
  void note_place(const std::string& region, bool begins, const Options& options) noexcept;

  /// The lockstep for the runs of that region's replays, which all ranks of the job make together.
  /// Null: there is nobody to make them with, or not all peers of this process are of the job.
  [[nodiscard]] std::unique_ptr<Lockstep> lockstep_of(const std::string& region,
                                                      const Options& options);
  /// For steps that are about no region. Null: they cannot be made, and `why` gets a clause.
  [[nodiscard]] std::unique_ptr<Lockstep> lockstep_among(const std::string& of,
                                                         const RankGroup& group,
                                                         const Options& options, std::string& why);

 private:
  ProcessRanks& ranks_;
  CommunicatorMembers members_;
  std::atomic<std::uint64_t> places_noted_{0};
};

}  // namespace contextune::intercept
