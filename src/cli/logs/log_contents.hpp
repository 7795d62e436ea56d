#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "log/log_reader.hpp"
#include "log/run_report.hpp"

namespace contextune::cli {

/// Everything that was read from a folder of rank logs.
struct LogContents {
  std::string folder;
  std::vector<log::ProcessReport> processes;
  std::vector<std::string> other_runs;  ///< ids of what was left out
  std::vector<log::BadLine> bad_lines;
  std::uint64_t num_bad_lines = 0;
  std::uint64_t num_records = 0;
};

/// The folder as it was given; else $CONTEXTUNE_LOG_DIR, or .autotune_logs.
[[nodiscard]] std::string log_folder(const std::string& given);

/// Reads a folder of rank logs, or one rank log. @throws Error if there is none
[[nodiscard]] LogContents read_logs(const std::string& folder);

/// Keeps the run that was asked for, or "all". Empty: the last one of each rank, but none of which
/// a rank is missing because it has run again since.
void select_run(LogContents& contents, const std::string& run);

/// Lists lines that could not be read on standard error.
void print_bad_lines(const LogContents& contents);

}  // namespace contextune::cli
