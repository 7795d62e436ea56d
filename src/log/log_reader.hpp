#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "log/record.hpp"

namespace contextune::log {

/// A line that could not be used: "file:line: reason".
struct BadLine {
  std::string file;
  std::uint64_t line = 0;  ///< from 1; 0: not known, reading began in mid-file
  std::string reason;

  [[nodiscard]] std::string to_string() const;
};

/// Takes a record; returns the empty string, or why it cannot be used.
using RecordSink = std::function<std::string(const Record&)>;

/// Cuts text that comes in pieces into lines and lines into records. Any bytes may come; a line
/// that is no record is remembered as bad. Not thread-safe.
class LineReader {
 public:
  /// @param numbered whether the first line is the file's first
  LineReader(std::string file, RecordSink sink, bool numbered = true);

  void feed(std::string_view piece);
  /// No more will come: what is left without a newline is a line that was cut off.
  void finish();

  [[nodiscard]] const std::vector<BadLine>& bad_lines() const { return bad_; }
  /// Bad lines in all; only the first thousand are kept.
  [[nodiscard]] std::uint64_t num_bad() const { return num_bad_; }
  [[nodiscard]] std::uint64_t num_records() const { return num_records_; }

 private:
  void take_line(std::string_view line);
  void add_bad(std::string reason);

  std::string file_;
  RecordSink sink_;
  bool numbered_;
  std::string partial_;
  bool too_long_ = false;
  std::uint64_t line_ = 0;
  std::uint64_t num_records_ = 0;
  std::uint64_t num_bad_ = 0;
  std::vector<BadLine> bad_;
};

/// Follows one file that others append to. A file that is replaced or cut is read from its start
/// again. Not thread-safe; never blocks.
class LogTail {
 public:
  LogTail(const std::string& path, RecordSink sink, std::uint64_t from_bytes = 0);

  /// Reads what is new. Returns `errno` if the file cannot be read, else 0.
  int poll();
  /// Reads what is new; the last line counts even if it has no newline.
  int finish();

  [[nodiscard]] const LineReader& lines() const { return lines_; }

 private:
  std::string path_;
  LineReader lines_;
  std::uint64_t offset_;
};

/// The rank logs in a folder, by rank. @throws Error if the folder cannot be read
[[nodiscard]] std::vector<std::string> find_rank_logs(const std::string& folder);

}  // namespace contextune::log
