#include "intercept/event_log.hpp"

#include "log/events.hpp"

namespace contextune::intercept {

void EventLog::fallback(FallbackReason reason, std::string_view region, std::string_view site,
                        std::string_view text) noexcept {
  try {
    std::string once(fallback_info(reason).word);
    once.append(1, '\n').append(region).append(1, '\n').append(site).append(1, '\n').append(text);
    {
      const std::lock_guard lock(mutex_);
      constexpr std::size_t most_lines = 4096;  // endless keys must not fill the disk
      if (said_.size() >= most_lines || !said_.insert(std::move(once)).second) return;
    }
    log::write_fallback(log_, reason, region, site, text);
  } catch (...) {
    // No memory for a log line: the line is lost.
  }
}

void EventLog::fault(std::string_view text) noexcept {
  log::write_fault(log_, text);
}

}  // namespace contextune::intercept
