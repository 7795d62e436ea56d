#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "log/log_file.hpp"

namespace contextune::log {

/// Appends lines to files from a thread whose descriptors are its own, so that no line can end up
/// in a file that the program has opened under a number of ours. Whoever appends goes on at once,
/// but where very much is waiting to be written; the first one waits for the thread. Where there is
/// no such thread, it writes for itself. Any thread.
class LineWriter {
 public:
  LineWriter();
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  /// A file that lives as long as this.
  LogFile& add(const std::string& path);
  void append(LogFile& file, std::string_view line);
  /// Waits until all that was appended is written, at most so long; where that was in vain, nobody
  /// waits again until something is written.
  void flush(std::chrono::milliseconds most);
  /// As flush() for a signal handler, whose thread may hold any lock: it takes none, and no memory.
  void flush_in_signal_handler(std::chrono::milliseconds most) const noexcept;

 private:
  struct State;
  const pid_t owner_;
  std::shared_ptr<State> state_;
};

}  // namespace contextune::log
