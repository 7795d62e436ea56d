#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <contextune/options.hpp>

#include "core/search/trial.hpp"
#include "core/search/tuning_observer.hpp"

namespace contextune {

/// One cost a config, in order; +inf for what failed, was cut off or got no sample.
[[nodiscard]] std::vector<double> dense_costs(std::span<const Trial> trials, Selection selection);

/// Relative standard error of the difference between a config's cost and the default's.
/// 0 where too little was measured to tell.
[[nodiscard]] double measured_spread(std::span<const Trial> trials, std::uint32_t config);

/// A winner, and why it is.
struct SelectedConfig {
  std::uint32_t config = 0;
  WinnerReason reason = WinnerReason::Fastest;
};

/// The winner. The lowest cost wins; what is not faster than the default by more than the margin,
/// or by more than its spread if that is larger, loses to the default; of equals the first wins.
/// @param spreads as measured_spread, one a config; ignored where margin is 0
[[nodiscard]] SelectedConfig select_winner(std::span<const double> costs,
                                           std::span<const double> spreads, double margin);

}  // namespace contextune
