// Any bytes as a rank log: nothing may crash, and what is said about bad lines must be fit for a
// terminal. Starts well from a folder of real logs.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <vector>

#include "cli/logs/log_json.hpp"
#include "cli/report/iteration_table.hpp"
#include "cli/report/rank_comparison.hpp"
#include "cli/report/summary.hpp"
#include "cli/trace/perfetto_trace.hpp"
#include "cli/trace/trial_csv.hpp"
#include "log/log_reader.hpp"
#include "log/run_report.hpp"

namespace {

void require_fit_for_terminal(std::string_view text) {
  for (const char c : text) {
    if (c != '\n' && (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace contextune;
  log::ReportBuilder builder;
  log::LineReader reader("rank-0.log",
                         [&](const log::Record& record) { return builder.add(record); });
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // In two pieces, cut anywhere.
  const std::size_t cut = size > 0 ? data[0] % size : 0;
  reader.feed(text.substr(0, cut));
  reader.feed(text.substr(cut));
  reader.finish();
  for (const log::BadLine& bad : reader.bad_lines()) require_fit_for_terminal(bad.to_string());
  cli::LogContents contents;
  contents.processes = builder.processes();
  contents.bad_lines = reader.bad_lines();
  for (const log::ProcessReport& process : contents.processes) {
    require_fit_for_terminal(cli::process_summary(process, 120, cli::Detail::All));
    require_fit_for_terminal(cli::kernel_list(process, 120));
    for (const log::RegionReport& region : process.regions) {
      require_fit_for_terminal(cli::to_markdown(cli::iteration_table(region), 120));
    }
  }
  for (const cli::RankComparison& job : cli::compare_ranks(contents.processes)) {
    if (job.ranks.size() < 2) std::abort();
    require_fit_for_terminal(
        cli::comparison_text(job, *job.ranks.begin()->second, 120, cli::Detail::All));
  }
  std::vector<const log::ProcessReport*> processes;
  for (const log::ProcessReport& process : contents.processes) processes.push_back(&process);
  std::ostringstream files;
  if (cli::write_perfetto(processes, files).num_events < processes.size()) std::abort();
  (void)cli::write_trial_csv(processes, files);
  require_fit_for_terminal(files.view());
#ifdef CONTEXTUNE_FUZZ_JSON
  if (cli::to_json(contents).empty()) std::abort();
#endif
  return 0;
}
