#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "intercept/collectives/process_collectives.hpp"
#include "intercept/ranks/process_ranks.hpp"
#include "intercept/site/site_table.hpp"
#include "intercept/tuner/search.hpp"

namespace contextune::intercept {

/// The collectives of one region: which stream of decisions is which site, and where its decisions
/// stand. Lives as long as the process. Any thread.
class RegionCollectives final : public DecisionPort {
 public:
  /// @param options outlive it
  RegionCollectives(std::string region, const gpu::Driver& driver, Search& search, SiteTable& table,
                    ProcessRanks& ranks, const Options& options, EventLog& log,
                    Objective objective);

  /// A call of NCCL inside the region has ended.
  /// @param counts  the call belongs to the entry under way
  /// @param seconds that it took
  void made(std::span<const DecisionMade> made, bool counts, double seconds) noexcept;
  /// The same, of a group with more decisions than are kept.
  void too_many_at_once() noexcept;
  /// The same, of a communicator that does not block: NCCL asks about it on a thread of its own.
  void decides_later() noexcept;
  /// The same, where NCCL asked about none of its collectives.
  void nobody_is_asked(contextune_tuner_state state) noexcept;
  /// The same, of a function about which NCCL asks no tuner.
  void saw_untunable(contextune_nccl_fn function) noexcept;

  /// From now on the communicators are kept that the program's calls in the region work on.
  void begin_look() noexcept { look_.is_on.store(true); }
  /// No longer. Gives those, each once.
  [[nodiscard]] std::vector<const void*> end_look();
  void note_used(const void* communicator) noexcept;

  /// Whether a body may be repeated whose collectives others would have to repeat as often.
  [[nodiscard]] bool may_repeat() const {
    return is_shared_ && ranks_.covers_all_peers(options_.distributed);
  }

  /// The site that a launch of NCCL's belongs to; null: more than one, or none.
  [[nodiscard]] Site* site_of(std::span<const DecisionMade> made) const noexcept;

  /// All that it has, each once.
  [[nodiscard]] std::vector<const Site*> sites() const;

  /// Whether `decisions` more may be made of every stream.
  [[nodiscard]] bool permits(std::uint32_t decisions) const noexcept;
  /// Sees to it that they may, at the latest at `until`.
  void await_permission(std::uint32_t decisions, double until) noexcept;

  /// Whether it is this region that has the key's decisions told.
  [[nodiscard]] bool has(const collective::LeaseKey& key) const noexcept;
  void forget(std::uint64_t context) noexcept;

  [[nodiscard]] std::vector<DecisionStanding> standings() override;
  void hold(std::span<const Limit> limits) override;
  void release() override;
  [[nodiscard]] std::string commit(const DecisionLease& lease) override;

 private:
  struct Stream {
    collective::LeaseKey key;
    std::uint64_t communicator = 0;
    const void* handle = nullptr;
    std::uint32_t ranks = 0;
    std::uint64_t first = 0;  ///< number of its first decision in the region
    Site* site = nullptr;     ///< null: none, or it is being made
    std::uint64_t limit = 0;  ///< the first number that is forbidden, while held
    bool is_held = false;
    bool is_gone = false;  ///< its communicator has ended, or it is another region's
  };

  struct Look {
    std::atomic<bool> is_on{false};
    std::vector<const void*> used;  ///< communicators, meanwhile
  };
  /// What is in the log already.
  struct Said {
    std::atomic<bool> unasked{false};
    std::array<std::atomic<bool>, contextune_nccl_count> untunable{};
  };

  /// @param is_part it is done in one launch with other collectives of its communicator
  [[nodiscard]] Site* make_site(const DecisionMade& made, bool is_foreign, bool is_part);
  /// The configs that would have to connect where there may be no memory for it; they are left out.
  [[nodiscard]] std::vector<std::uint32_t> too_large_to_connect(
      const DecisionMade& made, const std::string& label, const collective::SiteConfigs& configs);
  /// The bytes that the algorithm has taken for its connections, now or before; 0: no more than it
  /// may.
  [[nodiscard]] std::uint64_t too_many_bytes(const DecisionMade& made);
  void count(const DecisionMade& made, const Site& site, double seconds);

  const std::string region_;
  const gpu::Driver& driver_;
  Search& search_;
  SiteTable& table_;
  ProcessRanks& ranks_;
  const Options& options_;
  const Objective objective_;
  EventLog& log_;
  mutable std::mutex mutex_;
  std::deque<Stream> streams_;
  /// By context: what took too much, and how much.
  std::map<std::pair<std::uint64_t, collective::Algorithm>, std::uint64_t> given_up_;
  Look look_;
  std::atomic<bool> holding_{false};
  Said said_;
  const bool is_shared_;  ///< there are ranks to keep in step with; last: making it shows the rest
};

}  // namespace contextune::intercept
