#include "gpu/driver/regular_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include <contextune/error.hpp>

namespace contextune::gpu {
namespace {

constexpr std::size_t block_bytes = 64 << 10;

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw Error(path + ": " + what);
}

[[noreturn]] void refuse_size(const std::string& path, std::uint64_t most_bytes) {
  refuse(path, "is larger than the " + std::to_string(most_bytes >> 20) +
                   " MiB that are read; check that it is the file that was meant");
}

/// Closed with its scope.
struct Opened {
  explicit Opened(int given) : number(given) {}
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened() {
    if (number >= 0) ::close(number);
  }
  int number;
};

}  // namespace

int open_regular_file(const std::string& path) noexcept {
  struct stat status {};
  if (path.find('\0') != std::string::npos) {
    errno = EINVAL;
    return -1;
  }
  if (::stat(path.c_str(), &status) != 0) return -1;
  int fd = -1;
  if (S_ISREG(status.st_mode)) {
    // It may have become a pipe since.
    fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return -1;
  }
  if (fd >= 0 && ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) return fd;
  if (fd >= 0) ::close(fd);
  errno = ENOTSUP;
  return -1;
}

std::string read_regular_file(const std::string& path, std::uint64_t most_bytes) {
  const Opened file(open_regular_file(path));
  struct stat status {};
  if (file.number < 0 && errno == ENOTSUP) {
    refuse(path, "is not a regular file; copy what it holds into one");
  }
  if (file.number < 0 || ::fstat(file.number, &status) != 0) {
    refuse(path, "cannot be read: " + std::generic_category().message(errno));
  }
  if (static_cast<std::uint64_t>(status.st_size) > most_bytes) refuse_size(path, most_bytes);
  // Files of the kernel say that they have no bytes, and a file may grow meanwhile.
  std::string text;
  for (;;) {
    const std::size_t have = text.size();
    text.resize(have + block_bytes);
    const ssize_t count = ::read(file.number, text.data() + have, block_bytes);
    const int error = errno;
    text.resize(have + (count > 0 ? static_cast<std::size_t>(count) : 0));
    if (count == 0) return text;
    if (count < 0 && error != EINTR) {
      refuse(path, "cannot be read: " + std::generic_category().message(error));
    }
    if (text.size() > most_bytes) refuse_size(path, most_bytes);
  }
}

}  // namespace contextune::gpu
