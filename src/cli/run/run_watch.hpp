#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "log/log_reader.hpp"
#include "log/run_report.hpp"

namespace contextune::cli {

/// Reads what one run writes to its rank logs, while it goes on. Not thread-safe.
class RunWatch {
 public:
  /// Skips the lines that the logs hold now: they are of earlier runs.
  RunWatch(std::string folder, std::string run);

  /// Reads what is new.
  void poll();
  /// Reads the rest; the run is over.
  void finish();

  [[nodiscard]] const std::vector<log::ProcessReport>& processes() const {
    return report_.processes();
  }
  /// Lines of this run so far.
  [[nodiscard]] std::uint64_t num_lines() const { return num_lines_; }

 private:
  void find_new_logs(bool of_earlier_runs);

  std::string folder_;
  std::string run_;
  log::ReportBuilder report_;
  std::uint64_t num_lines_ = 0;
  std::map<std::string, std::unique_ptr<log::LogTail>> tails_;
};

}  // namespace contextune::cli
