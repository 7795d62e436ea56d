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

/// For programs: times in seconds, null where there is none. `schema` counts up when the meaning of
/// something changes.
[[nodiscard]] std::string to_json(const LogContents& contents);

}  // namespace contextune::cli
