#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "core/submission/submission.hpp"
#include "intercept/submission/submission_events.hpp"

namespace contextune::intercept {

/// Whole entries of one period, whose launches go out in one way, between two events.
struct SubmissionBlock {
  std::optional<std::uint64_t> number;  ///< absent: it only shows how long blocks are
  Submission submission;
  SubmissionEvents::Event begin;
  SubmissionEvents::Event end;
  std::uint32_t period = 0;
  std::uint64_t began_ns = 0;
  std::uint64_t entries = 0;
  std::uint64_t launches = 0;
  std::uint64_t graphs = 0;     ///< launches of them
  std::uint64_t disturbed = 0;  ///< SubmissionInUse::disturbed() when it began
  std::uint64_t attempts = 0;   ///< ChainedGraphs::Totals::attempts then
};

/// How many entries of the followed period make a block, so that it lasts for a millisecond or
/// more, less in a program that has used the GPU for a moment only. Serialised by the caller.
class BlockSize {
 public:
  /// Whether it is known. If not, the next block finds out.
  [[nodiscard]] bool is_known() const noexcept { return entries_ != 0; }

  /// Another period is followed.
  void follow(std::uint32_t period);
  /// Periods mean something else from now on.
  void forget_periods() noexcept { lengths_.clear(); }

  /// That a block of so many entries takes on the GPU; 0: not known.
  [[nodiscard]] std::uint64_t ns_of(std::uint64_t entries) const noexcept {
    return entries * entry_ns_;
  }
  /// The GPU took so long for a block as written, or for its beginning.
  /// @param is_followed the block's period is
  void learn(const SubmissionBlock& block, double seconds, bool is_followed);
  /// The block's length as entries of its period took at first, which compares over periods. 0: not
  /// known.
  [[nodiscard]] double work_of(const SubmissionBlock& block);

  /// @param took             nanoseconds so far
  /// @param elapsed_ns       since the program's first launch
  /// @param gathers          whether launches of such blocks may be gathered
  /// @param unbroken_entries that begin between two breaks; 0: not known
  [[nodiscard]] bool is_complete(const SubmissionBlock& block, std::uint64_t took,
                                 std::uint64_t elapsed_ns, bool gathers,
                                 std::uint64_t unbroken_entries);

  /// A numbered block has ended.
  void keeps() noexcept { lost_in_a_row_ = 0; }
  /// A block's period was broken. True: so many were lost in a row that blocks of this period never
  /// end.
  [[nodiscard]] bool loses(std::uint64_t unbroken_entries) noexcept;

 private:
  /// From the end of an entry to the end of the next, as written; 0: not known.
  struct Length {
    std::uint64_t ns = 0;
    std::uint64_t first_ns = 0;
  };
  [[nodiscard]] Length& length_of(std::uint32_t period);

  std::uint64_t entries_ = 0;                ///< of every block; 0: not known
  std::map<std::uint32_t, Length> lengths_;  ///< of an entry, by period
  std::uint64_t entry_ns_ = 0;               ///< of the period that is followed
  int lost_in_a_row_ = 0;                    ///< blocks whose period was broken
};

}  // namespace contextune::intercept
