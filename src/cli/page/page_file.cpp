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

// True: what is there is one of ours, or nothing.
bool may_replace(const std::string& path) {
  std::array<char, page_mark_bytes> beginning{};
  std::ifstream file(path, std::ios::binary);
  file.read(beginning.data(), beginning.size());
  const auto size = static_cast<std::size_t>(file.gcount());
  return size == 0 || is_page({beginning.data(), size});
}

// A link stays one, and the file that it leads to, which may not be there yet, is written.
std::string end_of_links(const std::string& path) {
  constexpr int most_links = 40;
  fs::path end = path;
  std::error_code error;
  for (int i = 0; i < most_links && fs::is_symlink(end, error); ++i)
    end = end.parent_path() / fs::read_symlink(end, error);
  return end.string();
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

// Returns errno, or 0.
int write_in_place(const std::string& path, int flags, std::string_view page) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | flags, 0666);
  if (file < 0) return errno;
  const int error = write_whole(file, page);
  return ::close(file) != 0 && error == 0 ? errno : error;
}

int write_and_rename(const std::string& path, std::string_view page) {
  const std::string temporary = path + "." + std::to_string(::getpid()) + ".tmp";
  int error = write_in_place(temporary, O_CREAT | O_EXCL, page);
  if (error == EEXIST) return error;
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) ::unlink(temporary.c_str());
  return error;
}

}  // namespace

void write_page(const std::string& path, std::string_view page, bool force) {
  if (path == "-") {
    std::cout << page << std::flush;
    if (!std::cout) throw Error("cannot write the page to the standard output");
    return;
  }
  const std::string target = end_of_links(path);
  struct stat there {};
  const bool exists = ::stat(target.c_str(), &there) == 0;
  if (exists && S_ISDIR(there.st_mode))
    throw Error(path + " is a folder; name a file with -o FILE");
  const bool is_file = !exists || S_ISREG(there.st_mode);
  if (exists && is_file && !force && !may_replace(target))
    throw Error(path +
                " is no page of contextune and is left as it is; name another file with -o FILE, "
                "or replace it with --force");
  // A pipe or a device is written to.
  const int error = is_file ? write_and_rename(target, page) : write_in_place(target, 0, page);
  if (error != 0)
    throw Error("cannot write " + path + ": " + std::strerror(error) +
                "; name a file in another folder with -o FILE");
}

}  // namespace contextune::cli
