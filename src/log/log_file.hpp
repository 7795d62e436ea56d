#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace contextune::log {

/// A text file to which lines are appended, each with one write(2), by several processes at once.
/// It and its folder appear with the first line. A line that cannot be written is lost and counted;
/// nothing is thrown, printed or signalled, and `errno` stays as it was. Nobody else can have lines
/// go elsewhere (log_folder.hpp).
/// It is made to live in a process that knows nothing of it. The descriptor is closed on exec and
/// takes no low number. It is checked before each line, because the program may have closed it and
/// opened a file of its own in its place.
/// Not thread-safe: its owner serialises calls. The counters may be read from any thread.
class LogFile {
 public:
  /// Relative paths count from where the process is now, not from where it will be.
  explicit LogFile(const std::string& path);
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  /// Appends `line`, which ends in a newline. False: it was lost.
  bool append(std::string_view line) noexcept;
  /// A line is lost before it could be appended, for that reason. Any thread.
  void lose(int error) noexcept { (void)fail(error); }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::uint64_t lines_written() const noexcept { return written_; }
  [[nodiscard]] std::uint64_t lines_lost() const noexcept { return lost_; }
  /// `errno` of the last failure; 0 if there was none. `why_not_written` has words for it.
  [[nodiscard]] int last_error() const noexcept { return error_; }

 private:
  bool usable(std::size_t more_bytes) noexcept;
  bool open() noexcept;
  bool open_now() noexcept;
  void close() noexcept;
  bool fail(int error) noexcept;

  std::string path_;
  std::string torn_line_;  // room for a line that has to start with a newline
  int fd_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  bool torn_ = false;  // the file does not end in a newline
  bool tried_ = false;
  double tried_at_ = 0;  // when opening last failed
  std::atomic<std::uint64_t> written_{0};
  std::atomic<std::uint64_t> lost_{0};
  std::atomic<int> error_{0};
};

}  // namespace contextune::log
