#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/submission/submission_search.hpp"
#include "intercept/host/clock.hpp"
#include "intercept/submission/submission_in_use.hpp"

namespace contextune::intercept {

/// The time that finding a way of launching has taken, and the time that it may take. Serialised by
/// the caller.
class SubmissionCosts {
 public:
  explicit SubmissionCosts(const SubmissionLimits& limits) : limits_(limits) {}

  [[nodiscard]] const SubmissionLimits& limits() const noexcept { return limits_; }

  /// A launch by the program: the first one counts. Any thread.
  void see_launch() noexcept {
    std::uint64_t none = 0;
    if (first_ns() == 0) (void)first_ns_.compare_exchange_strong(none, monotonic_ns());
  }
  [[nodiscard]] std::uint64_t first_ns() const noexcept {
    return first_ns_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] double seconds_since_first() const noexcept;

  /// Steps that were looked at.
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
  /// Looks at a step of the program. Most looks are alike, so that few are timed.
  template <typename Look>
  void time_step(Look look) {
    const bool is_sample = ++steps_ % steps_of_sample == 0;
    const std::uint64_t before = looks_ns_;
    const std::uint64_t begin = is_sample ? monotonic_ns() : 0;
    look();
    if (is_sample && looks_ns_ == before)
      looks_ns_ += steps_of_sample * std::min(monotonic_ns() - begin, longest_look_ns);
  }
  /// The same, within a look, for what few of them do: that is timed by itself.
  template <typename Look>
  void time_entry(Look look) {
    const std::uint64_t begin = monotonic_ns();
    look();
    looks_ns_ += monotonic_ns() - begin;
  }

  /// The search pays for all that has been taken since the last time.
  void charge(SubmissionSearch& search, const SubmissionInUse& in_use);

  /// That loads may still take for splicing.
  /// @param search null: there is none
  /// @param pays   the way in use was measured to save what they take
  [[nodiscard]] double left_for_loads(SubmissionSearch* search, const SubmissionInUse& in_use,
                                      bool pays);

 private:
  /// A look that takes longer than longest_look_ns was interrupted.
  static constexpr std::uint64_t steps_of_sample = 64;
  static constexpr std::uint64_t longest_look_ns = 2'000;

  const SubmissionLimits limits_;
  std::atomic<std::uint64_t> first_ns_{0};  ///< 0: nothing was launched yet
  std::uint64_t steps_ = 0;
  std::uint64_t looks_ns_ = 0;  ///< they took
  double charged_ = 0;          ///< seconds
};

}  // namespace contextune::intercept
