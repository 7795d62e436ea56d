#include "intercept/declared_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string_view>

#include "core/stable_hash.hpp"

namespace contextune::intercept {
namespace {

// Read where the program launches for the first time.
constexpr off_t most_bytes_read = off_t{64} << 20;

/// Its bytes, or of a large one how large it is and when it was written. False: it is no file that
/// can be read, or one that is read only once, as a pipe is.
bool add_file(const std::string& path, StableHash& hash) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return false;
  struct stat status {};
  bool is_read = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  if (is_read && status.st_size > most_bytes_read) {
    hash.add(static_cast<std::uint64_t>(status.st_size));
    hash.add(static_cast<std::uint64_t>(status.st_mtim.tv_sec));
    hash.add(static_cast<std::uint64_t>(status.st_mtim.tv_nsec));
  } else if (is_read) {
    std::array<char, 65536> block{};
    ssize_t size = 0;
    while ((size = read(file, block.data(), block.size())) > 0)
      hash.add(std::string_view(block.data(), static_cast<std::size_t>(size)));
    is_read = size == 0;
  }
  close(file);
  return is_read;
}

/// Empty: it cannot be read.
std::string word_of_file(const std::string& path) {
  StableHash hash;
  if (!add_file(path, hash)) return {};
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(hash.value()));
  return text.data();
}

}  // namespace

std::string declaration_of(std::string rule, std::span<const LaunchChange> changes) {
  std::set<std::string> paths;
  for (const LaunchChange& change : changes)
    for (const std::string* path : {&change.module, &change.source})
      if (!path->empty()) paths.insert(*path);
  for (const std::string& path : paths) {
    const std::string word = word_of_file(path);
    if (!word.empty()) rule += (rule.empty() ? "" : " ") + word;
  }
  return rule;
}

}  // namespace contextune::intercept
