#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "core/submission/submission.hpp"
#include "core/submission/submission_budget.hpp"
#include "core/submission/submission_judge.hpp"
#include "core/submission/submission_state.hpp"

namespace contextune {

/// Finds how the launches of one region should reach the driver, while the program runs.
///
/// The caller cuts the program's time into blocks: entries joined until they take about 1 ms, all
/// of whose launches go out in one way. It asks for each block's submission when the block begins,
/// and reports how long the block took whenever that is known.
///
/// Screens the submissions for a few blocks each, beside launches as written. Confirms the best by
/// pairs of neighbouring blocks, then leaves out either half of it. Pairs begin with either one
/// after the sequence of Thue and Morse (A B, B A, B A, A B). So work that grows, shrinks or
/// alternates hits both alike. Pure: equal calls get equal answers. Calls are made one at a time.
class SubmissionSearch {
 public:
  SubmissionSearch(SubmissionChoices choices, const SubmissionLimits& limits,
                   SubmissionState earlier = {});

  /// How the launches of this block go out. Blocks are numbered upwards; some may be left out.
  [[nodiscard]] Submission plan(std::uint64_t block);

  /// The distance between the ends of the blocks before it and of this one. May come late and in
  /// any order; what never comes counts as spoiled after 1024 blocks.
  /// @param work that the block did, in a unit that is the same for all blocks: entries, where all
  ///             of them are alike
  void measured(std::uint64_t block, double seconds, double work);

  /// The block says nothing: a broken period, a capture, a time-out, graphs that were not ready.
  /// Its possible cost counts; more than that is told by spend().
  void spoiled(std::uint64_t block);

  /// Nothing is tried until number_kernels() is called: those that lose by it are left out then.
  [[nodiscard]] bool wants_kernels() const {
    return step_.kind == SubmissionStep::Kind::NumberKernels;
  }
  /// The rest could not be measured in this run: nothing more will be tried.
  [[nodiscard]] bool is_blocked() const { return step_.kind == SubmissionStep::Kind::Blocked; }
  /// @param kernels whose launches were chained, by hashes of their names, the most frequent ones
  ///                first; at most most_numbered_kernels count
  void number_kernels(std::vector<std::uint64_t> kernels);

  /// Whether a block had launches beside those of the program's own graphs. Where most had none,
  /// and none for long, there is nothing to gather.
  void saw_block(bool has_launches);

  /// The process ends without a block, although it has shown enough: it is a run that has searched.
  void nothing_repeats() { count_run(); }

  /// Costs that the caller measured: splicing, building graphs, time of the host.
  void spend(double seconds) { budget_.spend(seconds); }
  /// Since the first launch.
  void elapsed(double seconds) { budget_.elapsed(seconds); }

  /// Compares a settled winner with launches as written again where it was shown under other
  /// software, in as many runs as a search may take, or where it lacked images, in the runs that
  /// are left. Searches anew where it is not shown to be faster.
  /// @return false: there is no such winner, and nothing is done
  bool doubt_winner(bool same_software);

  /// From now on, and for as long as the process runs, pairs of blocks compare the submission with
  /// launches as written, whatever that costs. Somebody has asked for it. Never settled.
  /// @param most pairs that are kept: of more, the oldest are forgotten
  void take_turns(const Submission& submission, std::size_t most = std::size_t{1} << 20);
  /// Whether anything is compared that is gathered.
  [[nodiscard]] bool may_gather() const {
    return takes_turns() ? state_.verdict.winner.gathered != 0 : !choices_.may_gather.empty();
  }
  /// The verdict of the turns: the gain with its 95 % interval.
  [[nodiscard]] SubmissionVerdict verdict_of_turns() const;

  /// The verdict whose winner runs while nothing is tried, and once settled. A winner that is
  /// confirmed may come before the search is settled.
  [[nodiscard]] const SubmissionVerdict& verdict() const { return state_.verdict; }
  [[nodiscard]] bool settled() const {
    return state_.verdict.settled && !state_.doubted && !takes_turns();
  }

  /// Numbered, in this run or an earlier one.
  [[nodiscard]] std::vector<std::uint64_t> kernels() const {
    return state_.kernels.value_or(std::vector<std::uint64_t>{});
  }

  /// The step that is being measured.
  [[nodiscard]] const SubmissionStep& step() const { return step_; }

  [[nodiscard]] const SubmissionBudget& budget() const { return budget_; }

  /// For the store, at any time: also what blocks that were measured so far say. The last of
  /// max_runs runs settles what is still open, and the second what cannot be measured.
  [[nodiscard]] SubmissionState state() const;

 private:
  enum class Role { Idle, WarmUp, Screen, First, Second };
  struct Planned {
    Submission submission;
    Role role = Role::Idle;
    std::uint64_t pair = 0;  ///< block number of the pair's first
    double risk = 0;         ///< that the budget holds for it
  };
  struct Pair {
    Submission candidate;
    Submission against;
    bool candidate_first = false;
    double first = 0;  ///< seconds an entry; 0: not there yet
    double second = 0;
  };
  struct Queued {
    Submission submission;
    Role role = Role::Screen;
  };
  struct Screened {
    Submission submission;
    std::uint64_t block = 0;
    double an_entry = 0;  ///< seconds
  };
  /// A round of the screen.
  struct Screen {
    std::deque<Queued> queue;   ///< its next blocks
    std::size_t under_way = 0;  ///< its blocks without a result
    std::vector<Screened> measured;
    [[nodiscard]] bool is_through() const { return under_way == 0 && queue.empty(); }
  };
  /// The blocks that hold nothing but launches of the program's own graphs.
  struct GraphBlocks {
    std::uint64_t others = 0;
    std::uint64_t in_a_row = 0;  ///< since the last other
    bool are_all = false;        ///< most had nothing else, and none for long
  };

  struct Use {
    Submission submission;
    int warm_ups = 0;  ///< blocks
    int failures = 0;  ///< in a row
    double ratio = 0;  ///< of its latest block to as written; 0: not known
  };

  void count_run() {
    if (!counted_) ++state_.runs;
    counted_ = true;
  }
  [[nodiscard]] bool takes_turns() const { return most_turns_ != 0; }
  void forget_old_turns();
  /// Asks for the next step when something has been found out.
  void advance();
  void queue_screen();
  [[nodiscard]] SubmissionJudgement judge(std::span<const Submission> unmeasurable);
  void give_up_half_pair();

  [[nodiscard]] Submission plan_screened(std::uint64_t block);
  [[nodiscard]] Submission plan_pair(std::uint64_t block);
  [[nodiscard]] Submission run(std::uint64_t block, const Submission& submission, Role role,
                               std::uint64_t pair = 0);
  [[nodiscard]] Submission idle(std::uint64_t block);
  /// While results are on their way: pairs of what looks best so far.
  [[nodiscard]] Submission use_wait(std::uint64_t block);
  [[nodiscard]] Submission begin_pair(std::uint64_t block, const Submission& candidate,
                                      const Submission& against, std::size_t most);
  [[nodiscard]] bool may_run(const Submission& submission) const;
  [[nodiscard]] double risk_of(const Submission& submission) const;
  [[nodiscard]] bool is_far_slower(const Submission& submission) const;
  [[nodiscard]] int missing_warm_ups(const Submission& submission) const;

  /// Takes it out of those without a result.
  [[nodiscard]] std::optional<Planned> take(std::uint64_t block);
  void charge(const Planned& planned, std::uint64_t block, double seconds, double an_entry);
  void complete_pair(std::uint64_t first_block, Role role, double an_entry);
  void fail(const Submission& submission);

  [[nodiscard]] double as_written_near(std::uint64_t block, std::uint64_t reach) const;
  void add_ratios(SubmissionState& state) const;
  [[nodiscard]] SubmissionPairs& pairs_of(const Submission& candidate, const Submission& against);
  [[nodiscard]] Use& use_of(const Submission& submission);
  [[nodiscard]] double known_ratio(const Submission& submission) const;
  /// The highest of all gathered ones; NaN: none is known.
  [[nodiscard]] double gathered_ratio() const;

  SubmissionChoices choices_;
  SubmissionLimits limits_;
  SubmissionState state_;
  SubmissionBudget budget_;
  SubmissionStep step_;
  bool counted_ = false;  ///< this run, among the runs
  GraphBlocks graph_blocks_;
  std::size_t most_turns_ = 0;  ///< 0: none are taken

  std::map<std::uint64_t, Planned> planned_;  ///< blocks without a result
  std::map<std::uint64_t, Pair> open_pairs_;  ///< by their first block
  std::optional<std::uint64_t> half_pair_;    ///< its second block comes next
  Screen screen_;
  std::map<std::uint64_t, double> as_written_;  ///< the latest blocks' seconds an entry
  std::optional<std::uint64_t> last_block_;
  std::vector<Use> uses_;
};

}  // namespace contextune
