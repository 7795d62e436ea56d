#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>

#include "log/log_file.hpp"

namespace contextune::log {

/// Appends lines to files from a thread whose descriptors are its own, so that no line can end up
/// in a file that the program has opened under a number of ours. Whoever appends waits until the
/// line is written, but not for long. Where there is no such thread, it writes for itself. Any
/// thread.
class LineWriter {
 public:
  LineWriter();
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  /// A file that lives as long as this.
  LogFile& add(const std::string& path);
  void append(LogFile& file, std::string_view line);

 private:
  struct State;
  const pid_t owner_;
  std::shared_ptr<State> state_;
};

}  // namespace contextune::log
