#include "space/file_text.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <contextune/error.hpp>

namespace contextune::space {
namespace {

/// A file descriptor that is closed with its scope.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

[[noreturn]] void refuse(std::string_view path, std::string_view what) {
  throw Error(std::string(path) + ": " + std::string(what));
}

[[noreturn]] void refuse_with_errno(std::string_view path, std::string_view what, int code,
                                    std::string_view remedy) {
  refuse(path,
         std::string(what) + ": " + std::generic_category().message(code) + std::string(remedy));
}

void check_trust(const std::string& path, const struct stat& status) {
  const uid_t user = ::geteuid();
  if (status.st_uid != user && status.st_uid != 0) {
    refuse(path, "the file belongs to user " + std::to_string(status.st_uid) +
                     ", but this process runs as user " + std::to_string(user) +
                     "; a space file is a program: make it yours with: chown " +
                     std::to_string(user) + " '" + path + "'");
  }
  // A group of one's own (umask 002) is no stranger.
  const bool group_may = (status.st_mode & S_IWGRP) != 0 && status.st_gid != ::getegid();
  if (group_may || (status.st_mode & S_IWOTH) != 0) {
    refuse(path,
           "others may write this file; a space file is a program: take that away with: "
           "chmod go-w '" +
               path + "'");
  }
}

}  // namespace

std::string read_space_file(const std::string& path) {
  // Non-blocking: opening a named pipe would otherwise wait for a writer.
  const Descriptor file(path.find('\0') == std::string::npos
                            ? ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
                            : (errno = EINVAL, -1));
  if (file.number() < 0) {
    refuse_with_errno(path, "cannot open the space file", errno,
                      "; check the path given with --space or CONTEXTUNE_SPACE");
  }
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) {
    refuse_with_errno(path, "cannot examine the space file", errno, "; check the file system");
  }
  if (S_ISDIR(status.st_mode)) {
    refuse(path, "is a folder, not a space file; give the file in it");
  }
  if (!S_ISREG(status.st_mode)) {
    refuse(path, "is not a regular file; copy what it holds into one");
  }
  check_trust(path, status);
  if (status.st_size > static_cast<off_t>(max_file_bytes)) {
    refuse(path, "has " + std::to_string(status.st_size) + " bytes, more than the " +
                     std::to_string(max_file_bytes) +
                     " that a space file may have; check that it is one");
  }

  // Up to one byte more than allowed: a file that grows meanwhile is refused by check_text.
  std::string text(max_file_bytes + 1, '\0');
  std::size_t length = 0;
  while (length < text.size()) {
    const ssize_t count = ::read(file.number(), text.data() + length, text.size() - length);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      refuse_with_errno(path, "cannot read the space file", errno, "; check the file system");
    }
    if (count == 0) break;
    length += static_cast<std::size_t>(count);
  }
  text.resize(length);
  return text;
}

std::string_view check_text(std::string_view text, std::string_view path) {
  if (text.size() > max_file_bytes) {
    refuse(path, "has more than the " + std::to_string(max_file_bytes) +
                     " bytes that a space file may have; check that it is one");
  }
  if (text.starts_with('\x1b')) {
    refuse(path, "is a precompiled chunk; give the Lua source that it was made from");
  }
  if (const std::size_t at = text.find('\0'); at != std::string_view::npos) {
    const auto line =
        1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    throw Error(std::string(path) + ":" + std::to_string(line) +
                ": holds a NUL byte, so it is not text; write the file anew as UTF-8");
  }
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return text;
}

}  // namespace contextune::space
