#include "cli/words/commands.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <contextune/error.hpp>
#include <cstring>
#include <fstream>
#include <iostream>

#include "cli/logs/log_contents.hpp"
#include "cli/logs/log_json.hpp"
#include "cli/report/iteration_table.hpp"
#include "cli/report/nccl_csv.hpp"
#include "cli/report/rank_comparison.hpp"
#include "cli/report/rank_differences.hpp"
#include "cli/report/summary.hpp"
#include "cli/trace/trace_files.hpp"
#include "cli/words/colour.hpp"
#include "cli/words/text.hpp"
#include "log/run_report.hpp"

namespace contextune::cli {
namespace {

constexpr std::size_t text_width = 120;

// Prints the config that every site ran in every pass.
void print_table(const log::ProcessReport& process, const log::RegionReport& region) {
  const IterationTable table = iteration_table(region);
  if (table.is_too_large) {
    std::cout << "\n  the table of " << region_title(process, region) << " has more than "
              << most_cells << " cells and is not shown; --json has what every site ran\n";
  }
  if (table.rows.empty()) return;
  std::cout << "\n  what every site of " << region_title(process, region)
            << " ran in every pass\n\n"
            << to_markdown(table, text_width);
}

void print_passes(const log::ProcessReport& process, bool passes) {
  for (const log::RegionReport& region : process.regions) {
    if (passes) print_table(process, region);
  }
  const std::string kernels = kernel_list(process, text_width);
  if (!kernels.empty()) std::cout << "\n" << kernels;
  std::cout << "\n";
}

void print_comparison(const RankComparison& comparison, int rank, bool passes) {
  const auto asked = comparison.ranks.find(rank);
  const log::ProcessReport& shown =
      asked == comparison.ranks.end() ? *comparison.ranks.begin()->second : *asked->second;
  std::cout << comparison_text(comparison, shown, text_width, Detail::All);
  if (!comparison.together) {
    std::cout << "\n";
  } else if (rank < 0 || asked != comparison.ranks.end()) {
    std::cout << "\n  rank " << shown.rank << " (--rank R shows another)\n";
    for (const log::RegionReport& region : shown.regions) {
      const std::string sites = sites_text(region, text_width, Detail::All);
      if (!sites.empty())
        std::cout << "\n  configs of region " << region_title(shown, region) << "\n" << sites;
    }
    print_passes(shown, passes);
  }
}

void print_text(const LogContents& contents, int rank, bool passes) {
  const std::vector<RankComparison> comparisons = compare_ranks(contents.processes);
  for (const RankComparison& comparison : comparisons) print_comparison(comparison, rank, passes);
  for (const log::ProcessReport* process : told_alone(contents.processes, comparisons)) {
    if (rank >= 0 && process->rank != rank) continue;
    std::cout << process_summary(*process, text_width, Detail::All);
    if (const std::string missing = missing_ranks({{process->rank, process}});
        comparisons.empty() && !missing.empty())
      std::cout << "  one of " << process->world_size << " ranks, " << missing << "\n";
    print_passes(*process, passes);
  }
  if (!contents.other_runs.empty()) {
    std::cout << "Other runs in these logs (--run ID, or --run all):";
    for (const std::string& run : contents.other_runs) std::cout << " " << run;
    std::cout << "\n";
  }
}

void write_nccl_csv(const LogContents& contents, const std::string& path) {
  std::size_t rows = 0;
  const std::string text = nccl_csv(contents.processes, rows);
  if (rows == 0) throw Error("no collective was tuned in these logs; " + path + " is not written");
  std::ofstream file(path, std::ios::trunc);
  file << text;
  file.close();
  if (!file) throw Error("cannot write " + path + ": " + std::strerror(errno));
  std::cout << count_text(rows, "row", "rows") << " for NCCL_TUNER_CONFIG_FILE=" << path << "\n";
}

void write_files(const LogContents& contents, const LogsRequest& request) {
  std::vector<const log::ProcessReport*> processes;
  for (const log::ProcessReport& process : contents.processes)
    if (request.rank < 0 || process.rank == request.rank) processes.push_back(&process);
  // Standard output is for the file, where that goes there.
  const auto says = [](const std::string& path) -> std::ostream& {
    return path == "-" ? std::cerr : std::cout;
  };
  if (!request.perfetto.empty())
    says(request.perfetto) << write_perfetto_file(processes, request.perfetto);
  if (!request.csv.empty()) says(request.csv) << write_trial_file(processes, request.csv);
}

bool has_rank(const LogContents& contents, int rank) {
  return rank < 0 || std::any_of(contents.processes.begin(), contents.processes.end(),
                                 [&](const auto& process) { return process.rank == rank; });
}

}  // namespace

int answer(const LogsRequest& request) {
  try {
    const bool wants_files = !request.perfetto.empty() || !request.csv.empty();
    switch_colours(!request.json && !wants_files && has_colours(request.colour, STDOUT_FILENO));
    LogContents contents = read_logs(log_folder(request.folder));
    const bool nothing = contents.num_records == 0;
    select_run(contents, request.run);
    const bool unknown = !nothing && contents.processes.empty();
    const bool no_rank = !nothing && !unknown && !has_rank(contents, request.rank);
    if (wants_files) {
      // Where that is not there which was asked for, it is said below.
      if (!nothing && !unknown && !no_rank) write_files(contents, request);
    } else if (!request.nccl_csv.empty()) {
      write_nccl_csv(contents, request.nccl_csv);
    } else if (request.json) {
      std::cout << to_json(contents) << "\n";
    } else {
      print_text(contents, request.rank, request.passes);
    }
    std::cout.flush();
    if (!std::cout) throw Error("cannot write the output");
    print_bad_lines(contents);
    if (nothing) std::cerr << "contextune logs: no line could be read\n";
    if (unknown) std::cerr << "contextune logs: there is no run " << request.run << "\n";
    if (no_rank) std::cerr << "contextune logs: there is no rank " << request.rank << "\n";
    return nothing || unknown || no_rank ? 1 : 0;
  } catch (const std::exception& error) {
    std::cerr << "contextune logs: " << error.what() << std::endl;
    return 1;
  }
}

}  // namespace contextune::cli
