#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include <contextune/options.hpp>

#include "core/agreement/companions.hpp"
#include "core/coordination/lockstep.hpp"
#include "intercept/host/event_log.hpp"
#include "intercept/ranks/communicator_members.hpp"
#include "intercept/ranks/rank_group.hpp"
#include "preload/contextune_abi.h"
#include "rank/gathered_rendezvous.hpp"
#include "rank/rendezvous.hpp"
#include "rank/unique_id.hpp"

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
  /// The number of DomainPlanner among the coordinator's deciders.
  static constexpr std::uint32_t domain_kind = 2;
  /// That of Lockstep.
  static constexpr std::uint32_t lockstep_kind = 3;
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
  /// The lockstep for the runs of that region's replays, which all ranks of the job make together.
  /// Null: there is nobody to make them with, or not all peers of this process are of the job.
  [[nodiscard]] std::unique_ptr<Lockstep> lockstep_of(const std::string& region,
                                                      const Options& options);
  // As JobRanks has it.
  void expect(const Options& options);
  [[nodiscard]] RankGroup members(const void* communicator, std::uint32_t ranks,
                                  const Options& options);
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
  /// in other ones need not wait for it. Waits for nobody.
  void note_place(const std::string& region, bool begins, const Options& options) noexcept;
  /// For steps that are about no region. Null: they cannot be made, and `why` gets a clause.
  [[nodiscard]] std::unique_ptr<Lockstep> lockstep_among(const std::string& of,
                                                         const RankGroup& group,
                                                         const Options& options, std::string& why);
  /// Whether the job's ranks are tuned together in every region, with collectives or without.
  [[nodiscard]] bool are_certain();

 private:
  /// The communicator that is the job where no variable declares one.
  struct Founder {
    std::uint64_t unique_id = 0;  ///< 0: there is none yet
    std::uint32_t ranks = 0;
    std::uint32_t rank = 0;
    std::array<std::byte, rank::unique_id_bytes> first_id{};
    std::uint32_t here = 0;  ///< of its ranks, in this process
  };

  void start(const rank::Rendezvous& found);
  [[nodiscard]] Coordinator* joined(bool by_launcher, std::string& why);
  [[nodiscard]] Coordinator* found();
  /// Those that a region is tuned with, or would be. Null: `why` gets a clause.
  [[nodiscard]] Coordinator* others(const Options& options, std::string& why);
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
  bool has_foreign_ = false;  ///< communicators that do not come of the founder's
  bool is_founded_ = false;   ///< by the program's first communicator: for collectives only
  std::unique_ptr<Coordinator> own_devices_;  ///< agrees for ranks that are all in this process
  Founder founder_;
  CommunicatorMembers members_;
  std::string why_alone_;  ///< a clause, once it is known that the founder's ranks cannot meet
  std::atomic<std::uint64_t> places_noted_{0};
  std::atomic<bool> has_parts_{false};
  std::atomic<bool> joined_early_{false};  ///< declared ranks were, if there are any
  std::atomic<bool> may_found_{false};     ///< nccl_ended has something to do
};

}  // namespace contextune::intercept
