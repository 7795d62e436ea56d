#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "cli/trace/trace_events.hpp"
#include "log/run_report.hpp"

namespace contextune::cli {

/// The seconds of a process's clock as times of a trace.
struct TraceClock {
  double begin = 0;  ///< of the trace, in seconds since 1970
  double ahead = 0;  ///< as HostClocks says
  [[nodiscard]] TraceTime operator()(double at) const noexcept;
};

/// Nanoseconds of that many seconds; 0 of what is not a number.
[[nodiscard]] TraceTime trace_duration(double seconds) noexcept;

/// Names of tracks and slices are no longer: a log may hold names of a megabyte.
inline constexpr std::size_t longest_trace_name = 160;

/// Writes what one process did by itself: all but its agreements with others.
class ProcessTrace {
 public:
  /// @param tracks the number of the last track of the trace, counted up
  ProcessTrace(TraceEvents& events, const log::ProcessReport& process, std::uint32_t number,
               TraceClock clock, std::uint32_t& tracks);

  void write();
  /// A new track of the process.
  [[nodiscard]] TraceTrack add_track(std::string_view name);
  [[nodiscard]] const log::ProcessReport& process() const noexcept { return process_; }
  [[nodiscard]] const TraceClock& clock() const noexcept { return clock_; }

 private:
  void write_region(const log::RegionReport& region);
  void write_stages(const log::RegionReport& region);
  void write_blocks(const log::RegionReport& region);
  void write_replays(const log::RegionReport& region);
  void write_confirms(const log::RegionReport& region, TraceTrack track);
  void write_region_times(const log::RegionReport& region);
  void write_site(const log::SiteReport& site, TraceTrack track);
  void write_fallbacks();
  void write_faults();
  /// The track of what belongs to no region.
  [[nodiscard]] TraceTrack events_track();
  [[nodiscard]] TraceTrack track_of(const log::FallbackReport& fallback);

  TraceEvents& events_;
  const log::ProcessReport& process_;
  const std::uint32_t number_;
  const TraceClock clock_;
  std::uint32_t& tracks_;
  TraceTrack own_track_;
  std::map<std::string, TraceTrack> regions_;
  std::map<std::pair<std::string, std::string>, TraceTrack> sites_;  ///< by region and name
};

}  // namespace contextune::cli
