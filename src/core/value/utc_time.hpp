#pragma once

#include <chrono>
#include <string>

namespace contextune {

/// "2026-11-20T20:33:53": universal time, by the calendar alone. C's own functions for it look at
/// the environment for a time zone first.
[[nodiscard]] inline std::string utc_text(std::chrono::sys_seconds time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  std::string text;
  const auto append = [&](long number, std::size_t digits, const char* behind) {
    const std::string written = std::to_string(number);
    if (written.size() < digits) text.append(digits - written.size(), '0');
    text.append(written).append(behind);
  };
  append(int{date.year()}, 4, "-");
  append(static_cast<long>(unsigned{date.month()}), 2, "-");
  append(static_cast<long>(unsigned{date.day()}), 2, "T");
  append(clock.hours().count(), 2, ":");
  append(clock.minutes().count(), 2, ":");
  append(clock.seconds().count(), 2, "");
  return text;
}

}  // namespace contextune
