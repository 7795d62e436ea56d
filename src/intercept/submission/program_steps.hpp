#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "core/submission/period_finder.hpp"
#include "preload/contextune_abi.h"

namespace contextune::intercept {

/// The kind of step that a driver call other than a launch is to whoever looks for what repeats.
/// Absent: it is no step, such as a call that asks whether something is done.
[[nodiscard]] std::optional<StepKind> step_kind_of(contextune_fn fn) noexcept;

/// Whether a call of the driver puts nothing on a stream, so that a launch after it comes directly
/// behind the one before it.
[[nodiscard]] bool is_question(contextune_fn fn) noexcept;

/// The same for launches that do the same but for their arguments.
[[nodiscard]] std::uint64_t token_of(const contextune_launch& call) noexcept;

/// The threads whose steps are looked at, a finder each. Calls are made one at a time.
class WatchedThreads {
 public:
  static constexpr std::size_t most_threads = 4;
  /// So many steps of others without one of its own: a thread has ended, or does other things.
  static constexpr std::uint64_t absent_after = 1024;

  struct Thread {
    std::uint64_t number = 0;
    std::uint64_t last_step = 0;  ///< among the steps of all
    std::unique_ptr<PeriodFinder> finder;
  };

  /// The thread that makes a step. Null: there are too many.
  /// @param is_new_welcome a thread that nothing is known of is looked at from now on
  /// @param kept           the number of one whose place no other thread gets
  [[nodiscard]] Thread* find(std::uint64_t number, bool is_new_welcome, std::uint64_t kept = 0);
  [[nodiscard]] bool is_absent(std::uint64_t number) const noexcept;

  [[nodiscard]] auto begin() const noexcept { return threads_.begin(); }
  [[nodiscard]] auto end() const noexcept { return threads_.end(); }
  void clear() noexcept;

 private:
  [[nodiscard]] bool is_absent(const Thread& thread) const noexcept {
    return steps_ - thread.last_step > absent_after;
  }

  std::array<Thread, most_threads> threads_;
  std::uint64_t steps_ = 0;
};

}  // namespace contextune::intercept
