#pragma once

#include <algorithm>

#include "cli/trace/trace_events.hpp"

namespace contextune::cli {

/// The last time that a trace tells of: whatever a log says, sums of times stay numbers.
inline constexpr TraceTime trace_end = 9'000'000'000'000'000'000;

/// Places slices on one track, so that none begins before the one before it has ended: their times
/// come from clocks that disagree by up to a millisecond. Durations stay what they are.
class TrackRow {
 public:
  /// Takes the next slice. @return when it begins
  TraceTime place(TraceTime begin, TraceTime& duration) noexcept {
    begin = std::clamp(begin, free_, trace_end);
    duration = std::clamp<TraceTime>(duration, 0, trace_end - begin);
    free_ = std::min(begin + duration + gap, trace_end);
    return begin;
  }

 private:
  /// Some readers round begins and durations down to whole nanoseconds, each by itself.
  static constexpr TraceTime gap = 2;
  TraceTime free_ = 0;
};

}  // namespace contextune::cli
