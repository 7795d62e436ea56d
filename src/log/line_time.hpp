#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace contextune::log {

using SystemTime = std::chrono::sys_time<std::chrono::microseconds>;

/// "2026-11-20T20:33:53.120Z": as each line begins. Universal time.
[[nodiscard]] std::string milliseconds_text(SystemTime time);
/// "2026-11-20T20:33:53.120456Z": for what happened long before its line was written.
[[nodiscard]] std::string microseconds_text(SystemTime time);

/// The same, of seconds since 1970.
[[nodiscard]] std::string microseconds_text(double seconds);
/// The same of a time this long ago, by the clock as it stands.
[[nodiscard]] std::string text_of_past(double seconds_ago);

/// Reads either. Nothing: it is neither, or no day or time of day that there is.
[[nodiscard]] std::optional<SystemTime> parse_time(std::string_view text);

}  // namespace contextune::log
