#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace contextune {

/// When the last steps are searched for a period, so that a step costs no more than a bounded
/// amount of work, and searches become rarer where none is found. Counts the steps of a finder.
class SearchPace {
 public:
  static constexpr std::uint64_t work_a_step = 64;

  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
  /// A step comes. Its number.
  std::uint64_t step() noexcept { return steps_++; }

  /// A period is followed from now on.
  void found() noexcept {
    idle_ = 0;
    unit_ = first_unit;
  }
  /// A step came while none was followed.
  void idle() noexcept {
    ++idle_;
    if (idle_ % doubling_after == 0) unit_ = std::min(unit_ * 2, rarest_unit);
  }
  /// Whether none was for so long that nothing repeats.
  [[nodiscard]] bool is_hopeless() const noexcept { return idle_ >= nothing_after; }

  /// The last steps that are searched now; 0: none are. A search comes when a multiple of the unit
  /// has been passed, and goes the further back the greater the power of two that divides it. So
  /// each step takes part in one search of every size.
  /// @param kept steps at most
  [[nodiscard]] std::uint32_t window(std::uint64_t kept) const noexcept {
    const std::uint64_t passed = steps_ ^ last_search_;
    if (passed < unit_ || steps_ + steps_ahead < free_at_) return 0;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(
        {std::uint64_t{4} * std::bit_floor(std::min<std::uint64_t>(passed, kept)), kept, steps_}));
  }
  /// Nothing to follow was found in them.
  void searched() noexcept { last_search_ = steps_; }

  /// Comparisons and copies that searches took.
  [[nodiscard]] std::uint64_t work() const noexcept { return work_; }
  void spend(std::uint64_t operations) noexcept {
    work_ += operations;
    free_at_ = std::max(free_at_, steps_) + (operations + work_a_step - 1) / work_a_step;
  }

 private:
  static constexpr std::uint64_t first_unit = 8;
  static constexpr std::uint64_t rarest_unit = 1024;
  static constexpr std::uint64_t doubling_after = 16384;  ///< steps until searches are rarer
  static constexpr std::uint64_t nothing_after = 65536;   ///< steps until nothing repeats
  static constexpr std::uint64_t steps_ahead = 2048;  ///< steps whose work may be done before them

  std::uint64_t steps_ = 0;
  std::uint64_t last_search_ = 0;
  std::uint64_t work_ = 0;
  std::uint64_t free_at_ = 0;        ///< the step from which on the next search is paid for
  std::uint64_t idle_ = 0;           ///< steps in which nothing was followed, since the last find
  std::uint64_t unit_ = first_unit;  ///< steps between searches
};

}  // namespace contextune
