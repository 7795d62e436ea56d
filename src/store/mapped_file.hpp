#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace contextune::store {

class Descriptor;

/// A file that only this process writes, kept without a descriptor: a program may close numbers
/// that it never opened, and open files of its own under them, at any moment. A lock of flock(2) on
/// what it was made from holds as long as it lives, and ends with the process; a child of fork has
/// nothing of it.
///
/// The kernel does the writing: where the file was cut short, or its file system is gone, a store
/// to mapped memory would end the program by SIGBUS.
class MappedFile {
 public:
  /// @param path of `file`, absolute; how it is made longer
  MappedFile(const Descriptor& file, std::string path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  /// False: it could not be mapped, and `errno` says why.
  [[nodiscard]] explicit operator bool() const { return memory_ != nullptr; }

  /// Puts `text` at that byte, with zeros after it as far as anything was put before, and makes the
  /// file longer where it has to be; never raises SIGXFSZ. @return 0, or what `errno` was
  [[nodiscard]] int put(std::size_t place, std::string_view text);

 private:
  [[nodiscard]] int grow(std::size_t bytes);
  [[nodiscard]] int copy(std::size_t place, std::string_view text) const;

  char* memory_ = nullptr;
  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  const pid_t owner_;
  std::size_t size_ = 0;  ///< of the file
  std::size_t used_ = 0;  ///< to the end of the text
};

}  // namespace contextune::store
