#include "cli/trace/trace_files.hpp"

#include <cmath>

#include <contextune/error.hpp>

#include "cli/trace/perfetto_trace.hpp"
#include "cli/trace/trial_csv.hpp"
#include "cli/trace/whole_file.hpp"
#include "cli/words/text.hpp"
#include "log/logfmt.hpp"

namespace contextune::cli {
namespace {

// Of two hosts' clocks, in seconds: lines have no shorter times.
constexpr double least_told_difference = 1e-3;

std::string clock_line(const HostClocks::Difference& clock) {
  const std::string host = "the clock of " + log::printable(clock.host);
  if (clock.num_verdicts == 0)
    return host + " is taken as it is: no agreement compares it with the first rank's\n";
  if (std::abs(clock.ahead) < least_told_difference) return {};
  return host + " is " + time_text(std::abs(clock.ahead)) +
         (clock.ahead < 0 ? " behind" : " ahead of") + " the first rank's, by " +
         count_text(clock.num_verdicts, "verdict", "verdicts") + ", and put right\n";
}

}  // namespace

std::string write_perfetto_file(const std::vector<const log::ProcessReport*>& processes,
                                const std::string& path) {
  if (!has_trace(processes)) {
    throw Error("no region, agreement or fallback is in these logs; " + log::printable(path) +
                " is not written; `contextune doctor` says what tuning needs");
  }
  WholeFile file(path);
  const TraceContents trace = write_perfetto(processes, file.stream());
  const std::uint64_t bytes = file.finish();
  std::string text;
  for (const HostClocks::Difference& clock : trace.clocks) text += clock_line(clock);
  return text + log::printable(path) + ": " + count_text(trace.num_events, "event", "events") +
         " of " + count_text(processes.size(), "process", "processes") + ", " + bytes_text(bytes) +
         "; open it in https://ui.perfetto.dev\n";
}

std::string write_trial_file(const std::vector<const log::ProcessReport*>& processes,
                             const std::string& path) {
  if (!has_trials(processes)) {
    throw Error("no trial is in these logs; " + log::printable(path) +
                " is not written; `contextune logs` says what was not tuned, and why");
  }
  WholeFile file(path);
  const std::uint64_t rows = write_trial_csv(processes, file.stream());
  const std::uint64_t bytes = file.finish();
  return log::printable(path) + ": " + count_text(rows, "row", "rows") + ", " + bytes_text(bytes) +
         "\n";
}

}  // namespace contextune::cli
