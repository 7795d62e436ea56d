#pragma once

#include <cstdint>

#include "core/search/tuning_clock.hpp"
#include "core/value/tuning_options.hpp"

namespace contextune {

/// How much one region's tuning may take, in passes, time and slowdown, and how much it has taken.
/// The options must outlive it.
class TuningBudget {
 public:
  explicit TuningBudget(const TuningOptions& options) : options_(options) {}

  [[nodiscard]] TuningClock& clock() { return clock_; }
  [[nodiscard]] const TuningClock& clock() const { return clock_; }

  /// @return its number among the passes
  std::uint64_t count_pass() { return passes_++; }
  [[nodiscard]] std::uint64_t passes() const { return passes_; }
  /// Trials have cost the program so much of its time.
  void charge(double seconds) { trials_cost_ += seconds; }
  /// A pass did not end in time: nothing more is tried, and no more is said about it.
  void overrun() { overran_ = said_spent_ = true; }
  [[nodiscard]] bool has_overrun() const { return overran_; }

  /// Whether nothing more is tried, for good.
  /// @param for_confirm else what confirming needs is kept
  [[nodiscard]] bool is_spent(bool for_confirm) const;
  /// It is spent, and that is to be said: once.
  [[nodiscard]] bool is_newly_spent();
  /// Whether trials have cost more than max_slowdown, for now.
  [[nodiscard]] bool trials_cost_too_much() const;

 private:
  const TuningOptions& options_;
  std::uint64_t passes_ = 0;
  TuningClock clock_;
  double trials_cost_ = 0;
  bool overran_ = false;
  bool said_spent_ = false;
};

}  // namespace contextune
