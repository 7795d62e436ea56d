#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include <contextune/options.hpp>

#include "core/agreement/companions.hpp"
#include "core/coordination/coordinator.hpp"
#include "intercept/host/event_log.hpp"
#include "intercept/ranks/founding_communicator.hpp"
#include "intercept/ranks/rank_groups.hpp"
#include "intercept/ranks/rank_place.hpp"
#include "preload/contextune_abi.h"
#include "rank/meeting/gathered_rendezvous.hpp"
#include "rank/meeting/rendezvous.hpp"

namespace contextune::intercept {

/// This process among the ranks of its job: with whom its regions are tuned. Any thread; lives as
/// long as the process. Waits for nobody: ranks are joined behind the scenes.
///
/// The job is the one that variables declare, or, where none do, that of the first communicator of
/// several ranks that the program makes from an ncclUniqueId.
class ProcessRanks {
 public:
  /// @param is_rank told once, with the number of ranks, which of the first communicator of
  ///                several this process is
  ProcessRanks(EventLog& log, Distributed distributed,
               std::function<void(std::uint32_t rank, std::uint32_t num_ranks)> is_rank = {})
      : log_(log), distributed_(distributed), is_rank_(std::move(is_rank)) {}

  /// The tuning of that region, in which this process alone decides, or all ranks do. The first
  /// region that others share makes the process join them, behind the scenes; a rendezvous that
  /// fails is final.
  /// @param store_knows as TuningOptions has it
  /// @param is_one_site it is there for the configs of one site, as that of a function is
  [[nodiscard]] std::unique_ptr<RegionTuning> tuning_of(const std::string& region,
                                                        const Options& options,
                                                        TuningObserver& observer, bool store_knows,
                                                        bool is_one_site = false);

  /// How many ranks the job has, as far as that is known by now.
  [[nodiscard]] std::uint32_t num_ranks();
  /// This process among them, as far as that is known by now.
  [[nodiscard]] RankPlace place();
  /// Whether no other rank of these comes before this one on its host, as far as that is known:
  /// those of a host are taken to follow one another.
  /// @param ranks ascending; empty: all of the job
  [[nodiscard]] bool is_first_on_host(std::span<const std::uint32_t> ranks);

  /// Whether the ranks of a communicator can still be joined.
  [[nodiscard]] rank::Standing standing();
  /// Joins those who meet there, or, where the rendezvous failed, nobody for good. Regions that are
  /// entered from now on are tuned with them.
  /// @return why they are not tuned with these; whoever was joined before stays joined. Empty: they
  ///         are
  [[nodiscard]] std::string join(const rank::Rendezvous& met);

  /// The program calls NCCL, and has.
  void nccl_begins(const contextune_nccl_call& call) noexcept;
  /// @param has_regions some part of the program is marked: it is joined for all that come to it,
  ///                    even if this process never does, because rank 0 is needed by all
  void nccl_ended(const contextune_nccl_call& call, bool has_regions) noexcept;

  /// Why the ranks of that communicator cannot be tuned together; a clause. Empty: perhaps they
  /// can.
  [[nodiscard]] std::string obstacle(std::uint64_t communicator, int ranks,
                                     Distributed distributed);

  // For the regions that look for others.
  /// Whether communicators of only some of the job's ranks are made, as far as this one can see.
  [[nodiscard]] bool has_parts() const noexcept { return has_parts_.load(); }
  /// Whether there is a job, or will be.
  [[nodiscard]] bool may_have_others();
  /// All of the job, or this process alone where all that was used is its own devices'.
  [[nodiscard]] Companions companions(const SharedTuningSettings& region, Distributed distributed,
                                      std::span<const DecisionStanding> used);
  /// Whether all ranks that this process has communicators with are of the job: they meet before
  /// they repeat a body, or do not repeat it, and none of them is left out.
  [[nodiscard]] bool covers_all_peers(Distributed distributed);
  /// As JobRanks has it.
  void expect(const Options& options);
  /// Whether the job's ranks are tuned together in every region, with collectives or without.
  [[nodiscard]] bool are_certain();

  /// Those ranks of the job that do something together.
  [[nodiscard]] RankGroups& groups() noexcept { return groups_; }
  /// All of the job, as far as they are joined or can be; null: there are none.
  [[nodiscard]] Coordinator* coordinator();
  /// Those that a region is tuned with, or would be. Null: `why` gets a clause.
  /// @param is_job whether the ranks that a launcher names belong together
  [[nodiscard]] Coordinator* others(const Options& options, std::string& why, bool is_job = false);
  /// Whether ranks were joined, or it is final that they are not.
  [[nodiscard]] bool knows_job();

 private:
  void start(const rank::Rendezvous& found);
  [[nodiscard]] Coordinator* joined(bool by_launcher, std::string& why);
  [[nodiscard]] Coordinator* found();
  [[nodiscard]] static bool is_declared() noexcept;
  [[nodiscard]] static std::unique_ptr<Coordinator> meet(const rank::Rendezvous& where);

  EventLog& log_;
  const Distributed distributed_;
  const std::function<void(std::uint32_t, std::uint32_t)> is_rank_;
  std::mutex mutex_;
  bool has_regions_ = false;
  std::uint64_t job_ = 0;         ///< that was joined
  std::uint32_t local_rank_ = 0;  ///< there
  std::unique_ptr<Coordinator> coordinator_;
  /// The job is the ranks of one communicator; else it is all that a launcher started.
  bool is_of_communicator_ = false;
  bool is_founded_ = false;  ///< by the program's first communicator: for collectives only
  std::unique_ptr<Coordinator> own_devices_;  ///< agrees for ranks that are all in this process
  FoundingCommunicator founder_;
  RankGroups groups_{*this};
  std::atomic<bool> has_parts_{false};
  std::atomic<bool> joined_early_{false};  ///< declared ranks were, if there are any
};

}  // namespace contextune::intercept
