#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "core/submission/found_region.hpp"
#include "core/submission/submission_search.hpp"
#include "gpu/clock/event_pool.hpp"
#include "intercept/graphs/chained_graphs.hpp"
#include "intercept/host/event_log.hpp"
#include "intercept/marks/open_regions.hpp"
#include "intercept/program/graph_call.hpp"
#include "intercept/program/kernel_table.hpp"
#include "intercept/program/thread_state.hpp"
#include "intercept/submission/program_steps.hpp"
#include "intercept/submission/stored_submission.hpp"
#include "intercept/submission/submissions_in_flight.hpp"
#include "intercept/submit/submitter.hpp"

namespace contextune::intercept {

/// Finds the stretch that the program repeats, and how its launches should reach the driver, while
/// the program runs.
///
/// Launches, launches of graphs, copies and waits are the steps of a thread. The steps of one
/// thread are cut into blocks, whole entries that together take a millisecond or more. An event
/// stands between two blocks, so that a block takes as long as the user waits for it, host
/// included. Each block's launches go out in one way; SubmissionSearch says in which. Once that is
/// settled, nothing is watched any more, and as written nothing is even seen.
///
/// Any thread; nothing throws.
class SubmissionTuning {
 public:
  SubmissionTuning(const gpu::Driver& driver, KernelTable& kernels, Submitter& submitter,
                   ChainedGraphs& graphs, SplicedLoads& loads, CaptureWatch& captures,
                   OpenRegions& open, EventLog& log, ProcessStore& store,
                   const SubmissionLimits& limits, double trial_timeout);
  SubmissionTuning(const SubmissionTuning&) = delete;
  SubmissionTuning& operator=(const SubmissionTuning&) = delete;

  /// Begins to watch, with what earlier runs found out.
  void start(SubmissionChoices choices) noexcept;

  /// The time that contextune has taken besides, before the program went on.
  void spend(double seconds) noexcept;

  /// The user says how launches go out: nothing is looked for. In turns with launches as written,
  /// both are compared until the program ends.
  void pin(const PinnedLaunches& pinned) noexcept;

  [[nodiscard]] bool is_pinned() const noexcept {
    return is_pinned_.load(std::memory_order_relaxed);
  }

  /// Whether launches are to be shown to `launch`.
  [[nodiscard]] bool watches() const noexcept { return watches_.load(std::memory_order_relaxed); }

  /// A launch by the program, which belongs to no other region.
  [[nodiscard]] CUresult launch(const contextune_launch& call, ThreadState& thread) noexcept;

  /// A launch of a graph by the program, which belongs to no other region, is about to begin.
  void launches_graph(const GraphCall& call) noexcept;
  /// A copy or a wait by the program is about to begin.
  /// @param identity tells steps of one kind apart
  void step(StepKind kind, std::uint64_t identity) noexcept;

  /// Collectives are being compared: for a moment no blocks are measured, but not for more than
  /// some seconds in all.
  void hold_off() noexcept;

  /// The program does something else than launching: perhaps it has waited for the GPU.
  void results_may_be_there() noexcept;

  /// Before a stream is destroyed.
  void forget_stream(CUstream stream) noexcept { in_flight_.forget_stream(stream); }
  /// Before a context is destroyed: events in it are lost.
  void forget_context(CUcontext context) noexcept;

  /// That loads may still take for splicing.
  [[nodiscard]] double seconds_left_for_loads() noexcept;

  /// The program ends: says what was found.
  void finish() noexcept;

 private:
  using Lock = std::unique_lock<std::mutex>;

  using Watched = WatchedThreads::Thread;
  struct Step {
    std::uint64_t token = 0;
    CUstream stream = nullptr;      ///< of a launch, never null; blocks begin and end there
    CUfunction function = nullptr;  ///< null: it is none of a kernel
  };
  /// From the end of an entry to the end of the next, as written; 0: not known.
  struct Length {
    std::uint64_t ns = 0;
    std::uint64_t first_ns = 0;
  };
  /// Goes back to the pool with the last block that it begins or ends.
  using Event = std::shared_ptr<const gpu::PooledEvent>;
  struct Block {
    std::optional<std::uint64_t> number;  ///< absent: it only shows how long blocks are
    Submission submission;
    Event begin;
    Event end;
    std::uint32_t period = 0;
    std::uint64_t entries = 0;
    std::uint64_t launches = 0;
    std::uint64_t graphs = 0;     ///< launches of them
    std::uint64_t disturbed = 0;  ///< `disturbed()` when it began
    std::uint64_t attempts = 0;   ///< ChainedGraphs::Totals::attempts then
  };

  /// Waits a second at most: another thread may be in the driver with it.
  [[nodiscard]] Lock lock_for_a_while() noexcept;
  /// How launches and graphs go out from now on.
  void put_in_use(const Submission& submission) noexcept;
  /// Launches so far that did not go out as they should have.
  [[nodiscard]] std::uint64_t disturbed() noexcept;
  /// Looks at launches until the GPU is known to survive the way that an earlier run found.
  void see_probation(CUstream stream) noexcept;
  void check_probation() noexcept;
  /// All that has been taken since the last time.
  void charge();
  void see(const Step& step) noexcept;
  /// The same, once it is this thread's turn.
  void look(const Step& step);
  void begins(const Step& step, Watched& watched);
  [[nodiscard]] bool is_block_complete(std::uint64_t now, std::uint64_t took);
  /// Before it is known how long an entry takes on the GPU: the block may never be completed.
  void probe(CUstream stream);
  void read_probe();
  void learn_length(const Block& block, double seconds);
  [[nodiscard]] Length& length_of(std::uint32_t period);
  /// Absent: it has not ended. Not above 0: that cannot be known.
  [[nodiscard]] std::optional<double> seconds_of(const Block& block) const;
  void breaks();
  /// The open block is lost. True: everything begins anew, with launches only.
  [[nodiscard]] bool block_is_broken();
  [[nodiscard]] Event record(CUstream stream);
  void begin_block(Event at);
  void end_block(CUstream stream);
  void read_results();
  /// Those that were chained, so that the search may leave them out.
  void number_kernels();
  /// Launches and graphs go out in the winner's way from now on, and nothing is looked at.
  void end_search();
  void settle();
  /// Saves what the next run has to know.
  void save();
  void write_winner(const std::string& found);
  void write_verdict(const SubmissionVerdict& verdict);
  void write_turns();
  /// The stretch that makes the blocks; absent: nothing that repeats was found.
  [[nodiscard]] std::optional<FoundRegion> found_region() const;
  [[nodiscard]] double seconds_since_first() const noexcept;

  const gpu::Driver& driver_;
  KernelTable& kernels_;
  Submitter& submitter_;
  ChainedGraphs& graphs_;
  SplicedLoads& loads_;
  CaptureWatch& captures_;
  OpenRegions& open_;
  EventLog& log_;
  ProcessStore& store_;
  const SubmissionLimits limits_;
  SubmissionsInFlight in_flight_;
  std::atomic<bool> watches_{false};

  std::mutex mutex_;
  std::unique_ptr<const StoredSubmission> stored_;
  std::unique_ptr<SubmissionSearch> search_;
  gpu::EventPool events_;
  WatchedThreads threads_;
  std::atomic<std::uint64_t> leader_{0};  ///< the thread whose entries make the blocks; 0: none yet
  std::uint32_t period_ = 0;              ///< that it follows
  bool entry_begins_ = false;        ///< with the leader's next launch, where blocks begin and end
  std::uint64_t begun_entries_ = 0;  ///< since the period was broken
  std::uint64_t unbroken_entries_ = 0;  ///< that begin between two breaks; 0: it was not broken yet
  int lost_in_a_row_ = 0;               ///< blocks whose period was broken
  bool only_launches_ = false;  ///< are steps: copies and waits come in no order that repeats
  std::atomic<std::uint64_t> held_off_first_ns_{0};
  std::atomic<std::uint64_t> held_off_until_ns_{0};
  std::uint64_t first_ns_ = 0;
  std::uint64_t block_ns_ = 0;                     ///< when the open block began
  std::uint64_t block_entries_ = 0;                ///< of every block; 0: the next one finds out
  std::map<std::uint32_t, Length> entry_lengths_;  ///< by period
  std::uint64_t entry_ns_ = 0;                     ///< of the one that is followed
  std::optional<Block> probe_;                     ///< the first entries of a block that finds out
  std::uint64_t next_block_ = 0;
  std::uint64_t looked_ns_ = 0;  ///< for results
  std::optional<Block> open_block_;
  std::deque<Block> pending_;  ///< blocks without a result
  double measured_seconds_ = 0;
  std::uint64_t steps_ = 0;               ///< that were looked at
  std::uint64_t looks_ns_ = 0;            ///< they took
  double charged_ = 0;                    ///< seconds
  std::optional<SubmissionState> saved_;  ///< as the next run finds it
  Submission in_use_;
  bool is_blocked_ = false;  ///< what is left cannot be measured in this run
  bool is_fatal_ = false;    ///< another way than as written was in an earlier run
  Event probation_;          ///< behind the first launches in the way that an earlier run found
  std::uint64_t launches_on_probation_ = 0;
  std::string found_;  ///< in words
  CUfunction first_function_ = nullptr;
  std::atomic<bool> is_pinned_{false};
  std::atomic<bool> is_on_probation_{false};
  std::atomic<bool> is_settled_{false};
  bool is_finished_ = false;
  std::atomic<bool> missed_{false};  ///< a step of the leader, as another was being looked at
};

}  // namespace contextune::intercept
