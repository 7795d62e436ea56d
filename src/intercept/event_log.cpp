#include "intercept/event_log.hpp"

#include "log/events.hpp"

namespace contextune::intercept {

void EventLog::fallback(FallbackReason reason, std::string_view region, std::string_view site,
                        std::string_view text) noexcept {
  try {
    std::string once;
    bool is_last = false;
    once.append(region).append(1, '\n').append(site).append(1, '\n').append(text);
    {
      const std::lock_guard lock(mutex_);
      // Endless keys must not fill the disk, nor keep what else happens out of the log.
      constexpr std::size_t most_lines = 1024;
      auto& said = said_[reason];
      if (said.size() >= most_lines || !said.insert(std::move(once)).second) return;
      is_last = said.size() == most_lines;
    }
    log::write_fallback(log_, reason, region, site, text);
    if (is_last)
      log::write_fallback(log_, reason, {}, {}, "Of this reason no more lines are written.");
  } catch (...) {
    // No memory for a log line: the line is lost.
  }
}

void EventLog::fault(std::string_view text) noexcept {
  log::write_fault(log_, text);
}

}  // namespace contextune::intercept
