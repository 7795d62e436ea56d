#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/choice/choice_ranks.hpp"
#include "api/choice/choice_record.hpp"
#include "api/region/snapshot.hpp"
#include "gpu/memory/footprint.hpp"
#include "intercept/host/uncancelled.hpp"
#include "store/trial_journal.hpp"

namespace contextune::api {

/// Runs every candidate of a problem against the default, on the same inputs, before any is timed.
/// A candidate that computes something else on one rank is wrong on all, and never chosen. Leaves
/// the memory of the call as it found it, unless the GPU does not end the work that has written
/// there. For one thread; waits for the GPU, with a deadline.
class ChoiceScreen {
 public:
  /// @param run         names its memory
  /// @param region      in which it will be searched
  /// @param uncancelled of the calling thread; lifted while an implementation runs
  ChoiceScreen(contextune_choice& choice, ChoiceProblem& problem, intercept::Runtime& runtime,
               ChoiceRanks& ranks, const contextune_choice_run& run, std::string region,
               const intercept::Uncancelled& uncancelled);

  /// Whether there is a result to compare.
  [[nodiscard]] static bool has_outputs(const contextune_choice_run& run) noexcept;

  /// Marks candidates that are wrong or cannot be run.
  /// @param only that one is looked at; null: all of which nothing is known
  /// @return false: the ranks have lost one another, or the default itself could not be run
  /// @throws Error if the GPU refuses a copy
  [[nodiscard]] bool run(const ChoiceCandidate* only = nullptr);

 private:
  using Bytes = std::vector<std::byte>;

  /// @return as run(), but for the default's own result; where it is true, memory is put back
  [[nodiscard]] bool compare_all(Snapshot& before, const ChoiceCandidate* only);
  /// Rules out candidates that took an earlier process down, on any rank. False: they have lost one
  /// another.
  [[nodiscard]] bool leave_out_blamed();
  /// It may take this process down, until survived() is called.
  void try_out(const ChoiceCandidate& candidate);
  void survived();
  /// It does not end: said now and in the next run, however this one ends.
  void hangs(const ChoiceCandidate& candidate);
  /// The same config of the same site as the search of that region has it.
  [[nodiscard]] store::TrialJournal::Trial tried(const ChoiceCandidate& candidate) const;
  /// After a comparison that did not come to its end.
  void put_back(std::unique_ptr<Snapshot> before) const;
  /// An implementation has ended this thread: it is ruled out, and what it left is put back.
  void thread_ends(std::unique_ptr<Snapshot> before) noexcept;
  /// Runs one, and waits for its end, but where ranks do it together. False: it said that it
  /// failed, or the GPU did not end it.
  [[nodiscard]] bool attempt(const ChoiceCandidate& candidate);
  [[nodiscard]] bool ends_within(double seconds) const;
  [[nodiscard]] std::vector<Bytes> outputs() const;
  /// Looks at what the default leaves where the outputs hold something else before. False: as
  /// compare_all().
  [[nodiscard]] bool look_at_filled(Snapshot& before, const std::vector<Bytes>& reference);
  /// The outputs that the call does not also read.
  [[nodiscard]] std::vector<gpu::MemoryRange> free_outputs() const;
  /// Fills those on all ranks. False: they have lost one another.
  [[nodiscard]] bool fill(std::uint64_t seed);
  /// How one candidate did in a run; absent: the ranks have lost one another.
  [[nodiscard]] std::optional<ChoiceRanks::Outcome> compare_run(
      ChoiceCandidate& candidate, Snapshot& before, const std::vector<Bytes>& reference);
  [[nodiscard]] bool agrees_with(const std::vector<Bytes>& reference) const;
  /// Another rank failed: work that waits for it here has to end.
  [[nodiscard]] bool abandon(const ChoiceCandidate& candidate);
  void rule_out(ChoiceCandidate& candidate, ChoiceCandidate::State state);

  contextune_choice& choice_;
  ChoiceProblem& problem_;
  const std::string region_;
  intercept::Runtime& runtime_;
  ChoiceRanks& ranks_;
  const contextune_choice_run& run_;
  const gpu::Driver& driver_;
  const double timeout_;
  const intercept::Uncancelled& uncancelled_;
  ChoiceCandidate* tried_ = nullptr;  ///< while it runs
  bool has_run_others_ = false;       ///< than the default
  bool is_stuck_ = false;             ///< the GPU, for good
  /// How results are told from what was there before the call, on all ranks.
  enum class Filling {
    None,   ///< not at all: there is nothing that may be filled
    Alone,  ///< outputs are filled before each run, which makes no difference to the default
    Beside  ///< and which makes one: each candidate is run on what was there as well
  };
  Filling filling_ = Filling::None;
  std::vector<std::vector<Bytes>> filled_references_;  ///< what the default left of each
};

}  // namespace contextune::api
