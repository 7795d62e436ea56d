#include "log/log_file.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "environment/root_folder.hpp"
#include "host/host_state.hpp"
#include "log/log_folder.hpp"

namespace contextune::log {
namespace {

constexpr double retry_after = 1.0;
// Above what programs count on when they number descriptors, below the usual limit of 1024.
constexpr int lowest_descriptor = 800;

double steady_seconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Creates the folders above `path`, each 0755 before the umask.
int make_folders(const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string folder = path.substr(0, slash);
    if (mkdir(folder.c_str(), 0755) == 0 || errno == EEXIST) continue;
    struct stat status {};
    const int error = errno;
    if (stat(folder.c_str(), &status) != 0) return error;  // else: there, but above is read-only
  }
  return 0;
}

// A line that another process is writing may be seen in part (a write shows page by page). Then
// ours starts with a newline that nobody needed: a blank line, which readers skip.
bool ends_in_newline(int fd, off_t size) {
  char last = '\n';
  if (size > 0 && pread(fd, &last, 1, size - 1) != 1) return true;  // not readable: believe it
  return last == '\n';
}

int open_in_folder(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::size_t name = slash == std::string::npos ? 0 : slash + 1;
  const std::string above = slash == std::string::npos ? "."
                            : slash == 0               ? "/"
                                                       : path.substr(0, slash);
  const int folder = open_log_folder(above);
  if (folder < 0) return -1;
  const int fd = open_log_file(folder, path.substr(name));
  const int error = errno;
  ::close(folder);
  errno = error;
  return fd;
}

std::string absolute(const std::string& path) {
  std::error_code error;
  const std::filesystem::path result = std::filesystem::absolute(path, error);
  return error ? path : result.lexically_normal().string();
}

}  // namespace

LogFile::LogFile(const std::string& path) : path_(absolute(path)) {}

LogFile::~LogFile() {
  close();
}

bool LogFile::append(std::string_view line) noexcept try {
  const host::HostState host_state;
  if (!usable(line.size() + 1) && !open()) return fail(error_);
  if (!usable(line.size() + 1)) return fail(error_);
  if (torn_) {
    torn_line_.assign(1, '\n').append(line);
    line = torn_line_;
  }
  ssize_t count = -1;
  do {
    count = ::write(fd_, line.data(), line.size());
  } while (count < 0 && errno == EINTR);
  if (count < 0) return fail(errno);
  const auto size = static_cast<std::size_t>(count);
  if (size > 0) torn_ = line[size - 1] != '\n';
  if (size != line.size()) return fail(ENOSPC);
  ++written_;
  return true;
} catch (...) {
  return fail(ENOMEM);
}

// Whether the descriptor is still ours, its file still in a folder, and `more_bytes` may be added
// without the SIGXFSZ that a limit on file sizes sends.
bool LogFile::usable(std::size_t more_bytes) noexcept {
  if (fd_ < 0) return false;
  struct stat status {};
  if (fstat(fd_, &status) != 0 || status.st_dev != device_ || status.st_ino != inode_) {
    fd_ = -1;  // the program's now, or nobody's
    return false;
  }
  if (status.st_nlink == 0) {
    close();
    return false;
  }
  rlimit limit{};
  if (S_ISREG(status.st_mode) && getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
      limit.rlim_cur != RLIM_INFINITY &&
      static_cast<rlim_t>(status.st_size) + more_bytes > limit.rlim_cur) {
    error_ = EFBIG;
    return false;
  }
  return true;
}

bool LogFile::open() noexcept {
  if (fd_ >= 0) return false;  // ours, but not usable
  const double now = steady_seconds();
  if (tried_ && now - tried_at_ < retry_after) return false;
  if (open_now()) {
    tried_ = false;
    return true;
  }
  tried_ = true;
  tried_at_ = now;
  return false;
}

bool LogFile::open_now() noexcept try {
  error_ = root_folder_has_changed() ? EXDEV : make_folders(path_);
  if (error_ != 0) return false;
  const int fd = open_in_folder(path_);
  if (fd < 0) {
    error_ = errno;
    return false;
  }
  // Where few descriptors are allowed any will do but 0 to 2: the program would write into ours.
  int high = fcntl(fd, F_DUPFD_CLOEXEC, lowest_descriptor);
  if (high < 0) high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (high < 0) error_ = errno;
  ::close(fd);
  if (high < 0) return false;
  fd_ = high;
  struct stat status {};
  if (fstat(fd_, &status) != 0) {
    error_ = errno;
    close();
    return false;
  }
  device_ = status.st_dev;
  inode_ = status.st_ino;
  torn_ = S_ISREG(status.st_mode) && !ends_in_newline(fd_, status.st_size);
  return true;
} catch (...) {
  error_ = ENOMEM;
  return false;
}

void LogFile::close() noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

bool LogFile::fail(int error) noexcept {
  error_ = error;
  ++lost_;
  return false;
}

}  // namespace contextune::log
