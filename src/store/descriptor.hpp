#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <utility>

namespace contextune::store {

/// A file descriptor that is closed with its owner, and on exec. It is never 0, 1 or 2: a program
/// that closed these writes into whatever has the number next.
class Descriptor {
 public:
  Descriptor() = default;
  /// Opens `name` in the folder `folder` (AT_FDCWD: where the process is). Absent: `errno` says
  /// why.
  Descriptor(int folder, const std::string& name, int flags, mode_t mode = 0);
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor();

  [[nodiscard]] explicit operator bool() const { return number_ >= 0; }
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_ = -1;
};

/// Writes all of it; never raises SIGXFSZ. @return 0, or what `errno` was
[[nodiscard]] int write_all(int fd, std::string_view text);

/// Writes all of it from that byte of the file on; never raises SIGXFSZ. @return as write_all
[[nodiscard]] int write_at(int fd, std::size_t place, std::string_view text);

/// Reads to the end, or one byte more than `most`. @return 0, or what `errno` was
[[nodiscard]] int read_all(int fd, std::size_t most, std::string& text);

}  // namespace contextune::store
