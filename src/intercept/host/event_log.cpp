#include "intercept/host/event_log.hpp"

#include <utility>

#include "log/events.hpp"

namespace contextune::intercept {

void EventLog::fallback(FallbackReason reason, std::string_view region, std::string_view site,
                        std::string_view text) noexcept {
  try {
    std::string once;
    once.append(region).append(1, '\n').append(site).append(1, '\n').append(text);
    Said said = Said::Before;
    {
      const std::lock_guard lock(mutex_);
      // Each reason counts by itself: one that comes all the time must not keep others out.
      said = note(fallbacks_[reason], std::move(once));
    }
    if (said == Said::Before) return;
    log::write_fallback(log_, reason, region, site, text);
    if (said == Said::Last)
      log::write_fallback(log_, reason, {}, {}, "The log gets no more lines with this reason.");
  } catch (...) {
    // No memory for a log line: the line is lost.
  }
}

void EventLog::fault(std::string_view text) noexcept {
  try {
    Said said = Said::Before;
    {
      const std::lock_guard lock(mutex_);
      said = note(faults_, std::string(text));
    }
    if (said != Said::Before) log::write_fault(log_, text);
  } catch (...) {
    // As above.
  }
}

EventLog::Said EventLog::note(std::set<std::string>& said, std::string line) {
  constexpr std::size_t most_lines = 1024;  // endless keys must not fill the disk
  if (said.size() >= most_lines || !said.insert(std::move(line)).second) return Said::Before;
  return said.size() == most_lines ? Said::Last : Said::First;
}

}  // namespace contextune::intercept
