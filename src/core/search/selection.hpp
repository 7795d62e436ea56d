#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <contextune/options.hpp>

#include "core/trials/trial.hpp"
#include "core/trials/tuning_observer.hpp"

namespace contextune {

/// The cost of each config, in order; +inf for those that failed, were cut off or got no sample.
[[nodiscard]] std::vector<double> dense_costs(std::span<const Trial> trials, Selection selection);

/// Relative standard error of the difference between a config's cost and the default's.
/// 0 where too little was measured to tell.
[[nodiscard]] double measured_spread(std::span<const Trial> trials, std::uint32_t config);

/// A winner, and why it is.
struct SelectedConfig {
  std::uint32_t config = 0;
  WinnerReason reason = WinnerReason::Fastest;
};

/// The winner. The lowest cost wins, the first of equals. A config loses to the default unless it
/// is faster by more than the margin, or by more than its spread if that is larger.
/// @param spreads as measured_spread, one a config; ignored where margin is 0
[[nodiscard]] SelectedConfig select_winner(std::span<const double> costs,
                                           std::span<const double> spreads, double margin);

}  // namespace contextune
