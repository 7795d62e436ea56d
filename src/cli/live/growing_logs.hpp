#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "log/log_reader.hpp"
#include "log/run_report.hpp"

namespace contextune::cli {

/// The rank logs of a folder while programs write them. The folder may be missing, and files may
/// come, grow, be replaced or go: it holds what is there. Not thread-safe.
class GrowingLogs {
 public:
  /// @param path a folder, or one file
  explicit GrowingLogs(std::string path) : path_(std::move(path)) {}

  /// Reads what is new, until `stopped`. Returns whether there was anything, or something went.
  bool read_new(const std::atomic<bool>& stopped);

  [[nodiscard]] const std::vector<log::ProcessReport>& processes() const {
    return report_->processes();
  }
  [[nodiscard]] std::vector<log::BadLine> bad_lines() const;
  [[nodiscard]] std::uint64_t num_bad_lines() const;
  [[nodiscard]] std::uint64_t num_records() const;

 private:
  /// A file, told from another one of the same name.
  struct File {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::string beginning;  ///< the first bytes
    std::uint64_t offset = 0;
    std::unique_ptr<log::LineReader> lines;
  };
  class OpenFile;

  [[nodiscard]] std::vector<std::string> find_files() const;
  [[nodiscard]] bool has_lost_any(const std::vector<std::string>& paths) const;
  void start_over();
  bool read_file(const std::string& path, const std::atomic<bool>& stopped);

  std::string path_;
  std::unique_ptr<log::ReportBuilder> report_ = std::make_unique<log::ReportBuilder>();
  std::map<std::string, File> files_;
};

}  // namespace contextune::cli
