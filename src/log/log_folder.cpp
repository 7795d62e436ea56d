#include "log/log_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace contextune::log {
namespace {

bool is_ours(uid_t user) {
  return user == geteuid() || user == 0;
}

// 0, or what is to stand in `errno`.
int problem_of_folder(const struct stat& status) {
  const bool anybody_swaps = (status.st_mode & S_IWOTH) != 0 && (status.st_mode & S_ISVTX) == 0;
  return !is_ours(status.st_uid) || anybody_swaps ? EPERM : 0;
}

// A second name matters where others may have made it: they can link what they may not read.
int problem_of_file(const struct stat& status, const struct stat& folder) {
  if (!is_ours(status.st_uid)) return EPERM;
  const bool others_link = (folder.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  return S_ISREG(status.st_mode) && status.st_nlink > 1 && others_link ? EMLINK : 0;
}

int refused(int fd, int error) {
  ::close(fd);
  errno = error;
  return -1;
}

int open_again(int folder, const char* name, int flags, mode_t mode = 0) {
  int fd = -1;
  do {
    fd = ::openat(folder, name, flags | O_CLOEXEC | O_NOCTTY, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

}  // namespace

int open_log_folder(const std::string& path) noexcept {
  int fd = open_again(AT_FDCWD, path.c_str(), O_PATH | O_NOFOLLOW);
  struct stat status {};
  if (fd < 0) return -1;
  if (::fstat(fd, &status) != 0) return refused(fd, errno);
  if (S_ISLNK(status.st_mode)) {
    if (!is_ours(status.st_uid)) return refused(fd, ELOOP);
    ::close(fd);
    fd = open_again(AT_FDCWD, path.c_str(), O_PATH | O_DIRECTORY);
    if (fd < 0) return -1;
    if (::fstat(fd, &status) != 0) return refused(fd, errno);
  }
  if (!S_ISDIR(status.st_mode)) return refused(fd, ENOTDIR);
  const int problem = problem_of_folder(status);
  return problem == 0 ? fd : refused(fd, problem);
}

int open_log_file(int folder, const std::string& name) noexcept {
  // Read access tells whether a killed process left half a line; on a pipe it also keeps us from
  // waiting for a reader and from SIGPIPE. Without O_NONBLOCK a full pipe would hold the program.
  const int fd =
      open_again(folder, name.c_str(), O_RDWR | O_APPEND | O_CREAT | O_NONBLOCK | O_NOFOLLOW, 0644);
  if (fd < 0) return -1;
  struct stat status {};
  struct stat of_folder {};
  if (::fstat(fd, &status) != 0 || ::fstat(folder, &of_folder) != 0) return refused(fd, errno);
  const int problem = problem_of_file(status, of_folder);
  return problem == 0 ? fd : refused(fd, problem);
}

std::string why_not_written(int error) {
  switch (error) {
    case ELOOP:
      return "a link stands in its way, and is not followed";
    case EPERM:
      return "the file or its folder belongs to another user, or everybody may write the folder";
    case EXDEV:
      return "the program has another root folder by now (chroot)";
    case EMLINK:
      return "the file has a second name, which may be another user's";
    default:
      return std::generic_category().message(error);
  }
}

}  // namespace contextune::log
