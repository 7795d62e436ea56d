#include "cli/page/page_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <contextune/error.hpp>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "cli/page/page.hpp"

namespace contextune::cli {
namespace {

namespace fs = std::filesystem;

Error cannot_write(const std::string& path, int error) {
  return Error("cannot write " + path + ": " + std::strerror(error) +
               "; name a file in another folder with -o FILE");
}

// True: what is there is one of ours, or nothing.
bool may_replace(const std::string& path) {
  std::array<char, page_mark_bytes> beginning{};
  std::ifstream file(path, std::ios::binary);
  file.read(beginning.data(), beginning.size());
  const auto size = static_cast<std::size_t>(file.gcount());
  return size == 0 || is_page({beginning.data(), size});
}

int write_whole(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

void write_in_place(const std::string& path, int flags, std::string_view page) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | flags, 0666);
  if (file < 0) throw cannot_write(path, errno);
  int error = write_whole(file, page);
  if (::close(file) != 0 && error == 0) error = errno;
  if (error != 0) throw cannot_write(path, error);
}

}  // namespace

void write_page(const std::string& path, std::string_view page, bool force) {
  if (path == "-") {
    std::cout << page << std::flush;
    if (!std::cout) throw Error("cannot write the page to the standard output");
    return;
  }
  std::error_code ignored;
  // A link stays one, and what it leads to is replaced.
  const std::string target =
      fs::is_symlink(path, ignored) ? fs::weakly_canonical(path, ignored).string() : path;
  struct stat there {};
  const bool exists = ::stat(target.c_str(), &there) == 0;
  if (exists && S_ISDIR(there.st_mode))
    throw Error(path + " is a folder; name a file with -o FILE");
  if (exists && !S_ISREG(there.st_mode)) return write_in_place(target, 0, page);
  if (exists && !force && !may_replace(target))
    throw Error(path +
                " is no page of contextune and is left as it is; name another file with -o FILE, "
                "or replace it with --force");
  const std::string temporary = target + "." + std::to_string(::getpid()) + ".tmp";
  try {
    write_in_place(temporary, O_CREAT | O_TRUNC | O_NOFOLLOW, page);
    if (::rename(temporary.c_str(), target.c_str()) != 0) throw cannot_write(path, errno);
  } catch (const Error&) {
    const int error = errno;
    ::unlink(temporary.c_str());
    throw cannot_write(path, error);
  }
}

}  // namespace contextune::cli
