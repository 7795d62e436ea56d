#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "core/submission/found_region.hpp"
#include "core/submission/submission_search.hpp"
#include "intercept/marks/open_regions.hpp"
#include "intercept/program/graph_call.hpp"
#include "intercept/program/kernel_table.hpp"
#include "intercept/program/thread_state.hpp"
#include "intercept/site/region_outcome.hpp"
#include "intercept/submission/followed_period.hpp"
#include "intercept/submission/measured_blocks.hpp"
#include "intercept/submission/stored_submission.hpp"
#include "intercept/submission/submission_costs.hpp"
#include "intercept/submission/submission_events.hpp"
#include "intercept/submission/submission_in_use.hpp"
#include "intercept/submission/submission_report.hpp"
#include "intercept/submission/submissions_in_flight.hpp"

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

  /// Whether steps are looked at. A program that launches little itself has little to gain, and
  /// would pay for the question: one that does nothing but call NCCL, or ends at once.
  [[nodiscard]] bool looks() const noexcept { return looks_.load(std::memory_order_relaxed); }
  /// Whether they may be looked at later.
  [[nodiscard]] bool may_look() const noexcept { return !is_settled() && !looks(); }

  /// A launch by the program, which belongs to no other region.
  /// @param by_nccl it is one of NCCL's own; need not be known but where may_look()
  [[nodiscard]] CUresult launch(const contextune_launch& call, ThreadState& thread,
                                bool by_nccl) noexcept;

  /// A launch of a graph by the program, which belongs to no other region, is about to begin.
  void launches_graph(const GraphCall& call) noexcept;
  /// A copy or a wait by the program is about to begin.
  /// @param identity tells steps of one kind apart
  void step(StepKind kind, std::uint64_t identity) noexcept;

  /// Collectives are being compared: for a moment no blocks are measured, but not for more than
  /// some seconds in all.
  void hold_off() noexcept { blocks_.hold_off(); }

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

  /// How the stretch that was found has come out. Absent: none was found, or a thread stands in the
  /// driver with it.
  [[nodiscard]] std::optional<RegionOutcome> outcome() noexcept;

 private:
  using Lock = std::unique_lock<std::mutex>;

  struct Step {
    std::uint64_t token = 0;
    CUstream stream = nullptr;      ///< of a launch, never null; blocks begin and end there
    CUfunction function = nullptr;  ///< null: it is none of a kernel
  };
  enum class Stage : std::uint8_t {
    Searching,  ///< or about to begin
    Blocked,    ///< what is left cannot be measured in this run, or is NCCL's for the most part
    Settled,
    Fatal,  ///< another way than as written was, in an earlier run
    Finished,
  };

  /// The time until the GPU is known to survive the way of launching that an earlier run found: it
  /// counts as in flight until then. Serialised but for `is_on`.
  struct Probation {
    std::atomic<bool> is_on{false};
    SubmissionEvents::Event survived;  ///< behind the launches that have to be
    std::uint64_t launches = 0;
  };

  [[nodiscard]] bool is_settled() const noexcept { return stage_ != Stage::Searching; }
  [[nodiscard]] bool is_on_probation() const noexcept {
    return probation_.is_on.load(std::memory_order_relaxed);
  }
  void search_for(std::unique_ptr<SubmissionSearch> search) noexcept;
  /// What speaks for a look, or against it, and how much.
  enum class Weighed : std::int8_t { Launch = 4, LaunchOfNccl = -1, Graph = 64 };
  /// A launch that is not looked at yet.
  void weigh(Weighed what) noexcept;
  void begin_to_look() noexcept;
  /// Of the launches that were weighed.
  [[nodiscard]] bool most_are_of_nccl() const noexcept {
    return 2 * seen_of_nccl_.load(std::memory_order_relaxed) >
           seen_.load(std::memory_order_relaxed);
  }
  /// Launches are shown from now on.
  void watch() noexcept;
  /// Waits a second at most: another thread may be in the driver with it.
  [[nodiscard]] Lock lock_for_a_while() noexcept;
  /// A launch, or one of a graph, goes to the stream in the winner's way.
  void see_probation(CUstream stream) noexcept;
  /// Perhaps the GPU is through with enough of them.
  void check_probation() noexcept;
  void see(const Step& step) noexcept;
  /// The same, once it is this thread's turn.
  void look(const Step& step);
  /// An entry begins with the step.
  void enter(const Step& step);
  void end_block(CUstream stream);
  void read_results();
  /// Launches and graphs go out in the winner's way from now on, and nothing is looked at.
  void end_search(Stage stage);
  void settle();
  /// Says what is measured now, if that is something else than before.
  void tell_step();
  /// Saves what the next run has to know.
  void save();
  void report_winner(const std::string& found) const;
  void report_turns() const;
  /// The program ends before the search does.
  void end_unsettled();
  /// The stretch that makes the blocks; absent: nothing that repeats was found.
  [[nodiscard]] std::optional<FoundRegion> found_region() const;

  // Members that every launch touches.
  SubmissionInUse in_use_;
  std::atomic<bool> watches_{false};
  std::atomic<bool> is_pinned_{false};
  std::atomic<Stage> stage_{Stage::Searching};
  std::atomic<bool> looks_{false};
  // Of launches before that.
  std::atomic<int> weight_{0};
  std::atomic<std::uint64_t> seen_{0};
  std::atomic<std::uint64_t> seen_of_nccl_{0};

  SubmissionReport report_;
  OpenRegions& open_;
  SubmissionsInFlight in_flight_;

  std::mutex mutex_;
  SubmissionEvents events_;
  StoredSubmission stored_;
  std::unique_ptr<SubmissionSearch> search_;
  bool is_left_to_nccl_ = false;  ///< so nothing is watched any more
  SubmissionStep told_;           ///< the step that was last said
  SubmissionCosts costs_;
  FollowedPeriod period_;
  Probation probation_;
  MeasuredBlocks blocks_;
};

}  // namespace contextune::intercept
