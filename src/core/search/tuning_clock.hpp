#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace contextune {

/// The times of one region's tuning, in seconds of the clock that its caller reads.
class TuningClock {
 public:
  /// The first entry begins. False: there was one.
  bool begin(double now) {
    if (has_begun()) return false;
    first_ = now;
    return true;
  }
  [[nodiscard]] bool has_begun() const { return !std::isnan(first_); }
  /// An entry begins or ends at that time.
  void reach(double now) { now_ = now; }
  /// Something comes at that time, unless an entry was later.
  void reach_at_least(double now) { now_ = std::max(now_, now); }
  [[nodiscard]] double now() const { return now_; }
  /// Since the first entry; NaN: there was none.
  [[nodiscard]] double elapsed() const { return now_ - first_; }
  /// The search has ended for now.
  void end() { ended_ = now_; }
  /// From the first entry to the end of the search, or to now.
  [[nodiscard]] double seconds(bool has_ended) const {
    return has_begun() ? (has_ended ? ended_ : now_) - first_ : 0;
  }

 private:
  double first_ = std::numeric_limits<double>::quiet_NaN();
  double now_ = 0;
  double ended_ = 0;
};

}  // namespace contextune
