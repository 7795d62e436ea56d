#pragma once

#include <optional>

#include "intercept/tuner/search.hpp"

namespace contextune::intercept {

/// The configs of one search that are in flight, as Probation has them, to those who look whether
/// the GPU gets through with them. Any thread.
class SearchTrials {
 public:
  explicit SearchTrials(Search& search) noexcept : search_(search) {}

  /// Winners run of which it is not known yet that this process survives them: those of earlier
  /// runs, and of other ranks.
  [[nodiscard]] bool any_winners() const noexcept { return search_.probation_.has_winners(); }
  /// The program has waited for the GPU: they may have been survived. Nothing is asked of the
  /// driver but whether events have come; not during a capture.
  void check();
  /// As Probation says.
  [[nodiscard]] std::optional<double> overdue_in(double timeout, double now) const;
  /// The GPU is not through with it, and perhaps never will be: says so, and what later runs make
  /// of it.
  void hang();

 private:
  Search& search_;
};

inline SearchTrials Search::trials() noexcept {
  return SearchTrials(*this);
}

}  // namespace contextune::intercept
