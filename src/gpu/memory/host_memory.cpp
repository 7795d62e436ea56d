#include "gpu/memory/host_memory.hpp"

#include <algorithm>
#include <fstream>
#include <optional>

namespace contextune::gpu {
namespace {

std::optional<std::size_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::size_t number = 0;
  if (file >> number) return number;
  return std::nullopt;  // also for "max"
}

std::size_t available_in_system(const std::string& root) {
  std::ifstream file(root + "proc/meminfo");
  std::string name;
  std::size_t kibibytes = 0;
  std::string unit;
  while (file >> name >> kibibytes && std::getline(file, unit)) {
    if (name == "MemAvailable:") return kibibytes * 1024;
  }
  return 0;
}

std::optional<std::size_t> left_of(const std::string& limit_file, const std::string& used_file) {
  const auto limit = number_in(limit_file);
  const auto used = number_in(used_file);
  if (!limit || !used) return std::nullopt;
  return *limit - std::min(*limit, *used);
}

}  // namespace

std::size_t available_host_memory(const std::string& root) {
  std::size_t available = available_in_system(root);
  const auto at_most = [&](std::optional<std::size_t> left) {
    if (left) available = std::min(available, *left);
  };
  // Lines of "0::/path" (version 2) and of "7:memory:/path" (version 1). In a container the files
  // lie at the top, whatever the path.
  std::ifstream cgroups(root + "proc/self/cgroup");
  for (std::string line; std::getline(cgroups, line);) {
    const std::size_t colon = line.find(':');
    const std::size_t path_colon = colon == std::string::npos ? colon : line.find(':', colon + 1);
    if (path_colon == std::string::npos) continue;
    const std::string controllers = line.substr(colon + 1, path_colon - colon - 1);
    // Every group above limits what is in it.
    for (std::string path = line.substr(path_colon + 1);; path.resize(path.rfind('/'))) {
      if (!path.empty() && path.back() == '/') path.pop_back();
      if (controllers.empty()) {
        const std::string folder = root + "sys/fs/cgroup" + path + "/memory.";
        at_most(left_of(folder + "max", folder + "current"));
      } else if (controllers == "memory") {
        const std::string folder = root + "sys/fs/cgroup/memory" + path + "/memory.";
        at_most(left_of(folder + "limit_in_bytes", folder + "usage_in_bytes"));
      }
      if (path.find('/') == std::string::npos) break;
    }
  }
  return available;
}

}  // namespace contextune::gpu
