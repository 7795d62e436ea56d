#include "cli/trace/perfetto_trace.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "cli/trace/agreement_trace.hpp"
#include "cli/trace/process_trace.hpp"
#include "cli/trace/trace_events.hpp"
#include "log/line_time.hpp"

namespace contextune::cli {
namespace {

double first_time(const log::ProcessReport& process) {
  const auto first = log::parse_time(process.first_time);
  return first ? static_cast<double>(first->time_since_epoch().count()) * 1e-6 : log::not_known;
}

std::string clocks_text(const std::vector<HostClocks::Difference>& clocks) {
  std::string text;
  for (const HostClocks::Difference& one : clocks) {
    text += text.empty() ? "" : "; ";
    text += one.host;
    if (one.num_verdicts == 0) {
      text += ": as its clock says, which no verdict compares with the others";
      continue;
    }
    std::array<char, 64> moved_by{};
    std::snprintf(moved_by.data(), moved_by.size(), ": %+.3f ms", -one.ahead * 1e3);
    text.append(moved_by.data()).append(" by ");
    text.append(std::to_string(one.num_verdicts)).append(" verdicts");
  }
  return text.empty() ? "as the logs say" : text;
}

}  // namespace

bool has_trace(const std::vector<const log::ProcessReport*>& processes) {
  return std::ranges::any_of(processes, [](const log::ProcessReport* process) {
    return !process->regions.empty() || !process->syncs.empty() || !process->fallbacks.empty() ||
           !process->faults.empty();
  });
}

TraceContents write_perfetto(const std::vector<const log::ProcessReport*>& processes,
                             std::ostream& out) {
  const HostClocks clocks(processes);
  double begin = std::numeric_limits<double>::infinity();
  for (const log::ProcessReport* process : processes)
    if (const double first = first_time(*process); !std::isnan(first))
      begin = std::min(begin, first - clocks.ahead(*process));
  if (!std::isfinite(begin)) begin = 0;
  TraceEvents events(out);
  auto tracks = static_cast<std::uint32_t>(processes.size());
  std::vector<ProcessTrace> traces;
  traces.reserve(processes.size());
  for (const log::ProcessReport* process : processes) {
    const auto number = static_cast<std::uint32_t>(traces.size() + 1);
    traces.emplace_back(events, *process, number, TraceClock{begin, clocks.ahead(*process)},
                        tracks);
    traces.back().write();
  }
  write_agreements(events, traces);
  TraceArguments about;
  about.add("begins", log::microseconds_text(begin));
  about.add("clocks", clocks_text(clocks.differences()));
  about.add("simulated", std::ranges::any_of(processes, &log::ProcessReport::simulated));
  events.finish(about);
  return {events.num_events(), clocks.differences()};
}

}  // namespace contextune::cli
