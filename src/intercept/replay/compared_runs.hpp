#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "intercept/replay/replay_memory.hpp"
#include "intercept/replay/replayer.hpp"
#include "intercept/replay/visit_ranks.hpp"
#include "intercept/tuner/screening.hpp"

namespace contextune::intercept {

/// Runs of one visit's recording, of which each is compared: with what the visit left or, on other
/// contents, with what the defaults leave there. Used by the thread that visits.
class ComparedRuns {
 public:
  /// Sites with the configs that they are to run; the others run their default.
  using Trials = Screening::Trials;
  using Config = Trials::value_type;

  /// @param visit number of the visit in its region
  ComparedRuns(Search& search, Replayer& replayer, ReplayMemory& memory, VisitRanks& ranks,
               std::uint64_t visit)
      : search_(search), replayer_(replayer), memory_(memory), ranks_(ranks), visit_(visit) {}
  ComparedRuns(const ComparedRuns&) = delete;
  ComparedRuns& operator=(const ComparedRuns&) = delete;

  /// The sites of the recording; known after the first run.
  [[nodiscard]] const std::vector<const Site*>& sites() const noexcept { return replayer_.sites(); }
  /// The sites that another config than the default is named for.
  [[nodiscard]] Trials trials_of(const std::function<std::uint32_t(const Site&)>& config_of) const;
  /// Runs that were made.
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }

  // Each throws as Replayer::run, ReplayMemory and ReplayRanks do.

  /// Whether a run with these configs, and the defaults elsewhere, leaves what it should: here, and
  /// on all ranks.
  [[nodiscard]] bool is_right_here(const Trials& trials);
  [[nodiscard]] bool is_right_with(const Trials& trials);
  /// Makes a pass of the search, which is open; `issued` is called when all is issued.
  /// @return whether it left what the region left, on all ranks
  [[nodiscard]] bool is_pass_right(const std::function<void()>& issued);
  /// Runs what the pass will run, on what is there, and compares nothing.
  void run_planned();
  /// Whether the region leaves the same on what it has left itself, to the last bit.
  [[nodiscard]] bool computes_the_same_again();

  /// From now on runs are on other contents of this memory, which differ by visit, number and time.
  void fill(std::vector<gpu::MemoryRange> ranges, std::uint32_t number, std::uint64_t time);
  /// Runs are on the visit's own memory again.
  void end_fill();
  /// Names what the visit changed in these ranges; see ReplayMemory.
  [[nodiscard]] std::uint64_t change_in(std::span<const gpu::MemoryRange> ranges) const {
    return memory_.change_in(ranges);
  }

 private:
  /// Once more with these configs, and the defaults elsewhere.
  void run_with(const Trials& trials);
  /// Whether the run that has ended left what the region left.
  [[nodiscard]] bool is_right();
  [[nodiscard]] bool is_right_on_filled();

  Search& search_;
  Replayer& replayer_;
  ReplayMemory& memory_;
  VisitRanks& ranks_;
  const std::uint64_t visit_;
  std::uint64_t number_ = 0;
  /// Memory that holds other contents in this run; absent: it is on the visit's own.
  std::optional<std::vector<gpu::MemoryRange>> filled_;
  std::uint64_t fill_seed_ = 0;
  bool has_reference_ = false;  ///< of these
};

}  // namespace contextune::intercept
