#pragma once

#include <cstdint>

#include "core/search/region_tuning.hpp"
#include "intercept/measuring/measurement.hpp"
#include "intercept/measuring/pass_log.hpp"

namespace contextune::intercept {

/// The process's timers as one search wants them. Under the search's lock, but for id().
class SearchTimers {
 public:
  SearchTimers(Measurement& measurement, RegionClock clock)
      : measurement_(measurement), clock_(clock), id_(measurement.add_search()) {}

  /// Tags the search's launches; 0: there are more searches than can be told apart.
  [[nodiscard]] std::uint16_t id() const noexcept { return id_; }
  [[nodiscard]] RegionClock clock() const noexcept { return clock_; }
  /// Before a site is known.
  void set_clock(RegionClock clock) noexcept { clock_ = clock; }
  [[nodiscard]] const char* name() const noexcept { return measurement_.timer_name(); }

  /// How a pass is measured that is to be measured so.
  [[nodiscard]] Measure measure(Measure planned) const noexcept;
  /// Says whether single launches are timed from now on. False: they cannot be.
  bool want(bool wanted);
  /// Where configs differ in how many launches they make, each of which CUPTI makes dearer for as
  /// long as it is there.
  void compare_without_cupti();
  /// As Measurement says.
  void poll(bool wait) { measurement_.poll(wait); }
  [[nodiscard]] ClockReading read_clock() { return measurement_.read_clock(); }
  /// The search is over.
  void end();

 private:
  Measurement& measurement_;
  RegionClock clock_;
  const std::uint16_t id_;
  int release_tries_ = 0;  ///< of CUPTI, since it was last wanted
};

}  // namespace contextune::intercept
