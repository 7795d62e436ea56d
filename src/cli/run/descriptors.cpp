#include "cli/run/descriptors.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace contextune::cli {

void close_all_but(const std::vector<int>& kept) {
  const auto is_kept = [&](int fd) { return std::ranges::find(kept, fd) != kept.end(); };
  std::vector<int> open_now;
  if (DIR* const folder = opendir("/proc/self/fd")) {
    while (const dirent* entry = readdir(folder)) {
      const int fd = std::atoi(entry->d_name);
      if (fd > 2 && fd != dirfd(folder) && !is_kept(fd)) open_now.push_back(fd);
    }
    closedir(folder);
  }
  for (const int fd : open_now) close(fd);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd <= 2 && null >= 0; ++fd) {
    if (!is_kept(fd) && fd != null) dup2(null, fd);
  }
  if (null > 2) close(null);
}

}  // namespace contextune::cli
