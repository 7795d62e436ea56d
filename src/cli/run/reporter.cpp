#include "cli/run/reporter.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <contextune/error.hpp>
#include <cstdlib>
#include <cstring>

#include "cli/words/text.hpp"

namespace contextune::cli {
namespace {

constexpr std::size_t usual_width = 100;

// Longest wait for a reader of standard error that takes nothing: the program's end is due.
constexpr int patience_ms = 2000;

bool takes_more(int fd) {
  pollfd ready{fd, POLLOUT, 0};
  int result = -1;
  do {
    result = poll(&ready, 1, patience_ms);
  } while (result < 0 && errno == EINTR);
  return result > 0;
}

// It knows no sequence that clears a line.
bool is_dumb_terminal() {
  const char* const terminal = std::getenv("TERM");
  return terminal != nullptr && std::string_view(terminal) == "dumb";
}

// False: nobody took it all in time.
bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    if (!takes_more(fd)) return false;
    // A pipe that takes anything takes this much, without waiting.
    const ssize_t count = write(fd, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

Reporter::Reporter(const std::string& file, bool quiet, ProgressUse progress)
    : progress_(progress) {
  if (!file.empty()) {
    text_fd_ = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0644);
    if (text_fd_ < 0) {
      throw Error("cannot write the report " + file + ": " + std::strerror(errno));
    }
    own_file_ = true;
  } else if (!quiet && fcntl(STDERR_FILENO, F_GETFD) >= 0) {
    text_fd_ = STDERR_FILENO;
    on_terminal_ = isatty(STDERR_FILENO) == 1;
    // A status line and the program's own lines would run into one another.
    if (on_terminal_ && isatty(STDOUT_FILENO) != 1 && progress != ProgressUse::Never &&
        !is_dumb_terminal())
      open_status_line();
  }
}

Reporter::~Reporter() {
  clear_status();
  if (own_file_) close(text_fd_);
  if (status_fd_ >= 0) close(status_fd_);
}

void Reporter::open_status_line() {
  std::array<char, 256> name{};
  if (ttyname_r(STDERR_FILENO, name.data(), name.size()) != 0) return;
  status_fd_ = open(name.data(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

bool Reporter::has_colours(ColourUse use) const {
  if (own_file_) return use == ColourUse::Always;
  return text_fd_ >= 0 && cli::has_colours(use, text_fd_);
}

std::size_t Reporter::width() const {
  winsize size{};
  if (own_file_ || text_fd_ < 0 || ioctl(text_fd_, TIOCGWINSZ, &size) != 0) return usual_width;
  return size.ws_col >= 40 ? size.ws_col : usual_width;
}

void Reporter::say(std::string_view lines) {
  if (text_fd_ < 0 || is_given_up_) return;
  clear_status();
  is_given_up_ = !write_all(text_fd_, lines);
}

void Reporter::say_status(const std::string& line) {
  const auto now = std::chrono::steady_clock::now();
  if (line.empty() || line == last_line_ || now < next_line_) return;
  next_line_ = now + std::chrono::seconds(1);
  last_line_ = line;
  say(line + "\n");
}

void Reporter::show_status(const std::string& line) {
  if (says_status()) return say_status(line);
  // A background job keeps off the terminal.
  if (status_fd_ < 0 || line == status_ || tcgetpgrp(status_fd_) != getpgrp()) return;
  const std::string text = "\r\033[K" + shortened(line, width() - 1);
  if (write(status_fd_, text.data(), text.size()) > 0) status_ = line;
}

void Reporter::clear_status() {
  if (status_.empty()) return;
  (void)write_all(status_fd_, "\r\033[K");
  status_.clear();
}

}  // namespace contextune::cli
