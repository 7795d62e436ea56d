#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "cli/words/colour.hpp"
#include "cli/words/command_line.hpp"

namespace contextune::cli {

/// Where `contextune run` speaks while and after the program runs: in the report file if one was
/// given, else on standard error, never on standard output. Not thread-safe.
class Reporter {
 public:
  /// @param file empty: standard error, if it is open
  /// @param quiet nothing goes to standard error
  /// @throws Error if the file cannot be written
  Reporter(const std::string& file, bool quiet, ProgressUse progress = ProgressUse::Auto);
  ~Reporter();
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;

  /// Whether anything is heard.
  [[nodiscard]] bool listening() const { return text_fd_ >= 0; }
  /// Whether somebody may follow while the program runs. A reader that only collects standard error
  /// gets the end alone, not lines between those of the program.
  [[nodiscard]] bool shows_progress() const {
    if (progress_ != ProgressUse::Auto) return progress_ == ProgressUse::Always && listening();
    return own_file_ || on_terminal_;
  }
  /// Whether show_status does anything.
  [[nodiscard]] bool shows_status() const { return status_fd_ >= 0 || says_status(); }
  /// The descriptors that must stay open.
  [[nodiscard]] std::vector<int> descriptors() const { return {text_fd_, status_fd_}; }
  /// Whether what is said has colours. Never in a file, unless that is asked for.
  [[nodiscard]] bool has_colours(ColourUse use) const;
  /// Characters of one line, 100 where it does not matter.
  [[nodiscard]] std::size_t width() const;

  /// Whole lines.
  void say(std::string_view lines);

  /// Shows a line in place of the one before. Only on a terminal that the program does not write to
  /// itself. Elsewhere, where progress is always shown, in lines of their own, one a second at
  /// most.
  void show_status(const std::string& line);

 private:
  void open_status_line();
  [[nodiscard]] bool says_status() const {
    return listening() && !own_file_ && status_fd_ < 0 && progress_ == ProgressUse::Always;
  }
  void say_status(const std::string& line);
  void clear_status();

  int text_fd_ = -1;
  int status_fd_ = -1;  // another description of the terminal, which never blocks us
  ProgressUse progress_ = ProgressUse::Auto;
  std::chrono::steady_clock::time_point next_line_;  // of a status that is a line of its own
  std::string last_line_;
  bool own_file_ = false;
  bool on_terminal_ = false;
  bool is_given_up_ = false;  // nobody takes what is said
  std::string status_;
};

}  // namespace contextune::cli
