#include "store/descriptor.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace contextune::store {

Descriptor::Descriptor(int folder, const std::string& name, int flags, mode_t mode) {
  if (name.find('\0') != std::string::npos) {
    errno = EINVAL;
    return;
  }
  do {
    number_ = ::openat(folder, name.c_str(), flags | O_CLOEXEC | O_NOCTTY, mode);
  } while (number_ < 0 && errno == EINTR);
  if (number_ < 0 || number_ > STDERR_FILENO) return;
  const int high = ::fcntl(number_, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  ::close(number_);
  number_ = high;
  errno = error;
}

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

int write_all(int fd, std::string_view text) {
  struct stat status {};
  rlimit limit{};
  if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
      ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      static_cast<rlim_t>(status.st_size) + text.size() > limit.rlim_cur) {
    return EFBIG;  // writing would end a program that does not expect the signal
  }
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) return ENOSPC;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

int write_at(int fd, std::size_t place, std::string_view text) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      static_cast<rlim_t>(place + text.size()) > limit.rlim_cur) {
    return EFBIG;
  }
  const ssize_t written = ::pwrite(fd, text.data(), text.size(), static_cast<off_t>(place));
  if (written < 0) return errno;
  return written == static_cast<ssize_t>(text.size()) ? 0 : ENOSPC;
}

int read_all(int fd, std::size_t most, std::string& text) {
  text.clear();
  std::string piece(std::min<std::size_t>(most + 1, 256 << 10U), '\0');
  while (text.size() <= most) {
    const ssize_t count = ::read(fd, piece.data(), std::min(piece.size(), most + 1 - text.size()));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) return 0;
    text.append(piece.data(), static_cast<std::size_t>(count));
  }
  return 0;
}

}  // namespace contextune::store
