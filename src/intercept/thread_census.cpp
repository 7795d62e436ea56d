#include "intercept/thread_census.hpp"

#include <dirent.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

namespace contextune::intercept {
namespace {

std::string name_of(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

}  // namespace

std::vector<pid_t> thread_ids() {
  std::vector<pid_t> ids;
  DIR* folder = opendir("/proc/self/task");
  if (folder == nullptr) return ids;
  while (const dirent* entry = readdir(folder)) {
    const int id = std::atoi(entry->d_name);
    if (id > 0) ids.push_back(id);
  }
  closedir(folder);
  std::sort(ids.begin(), ids.end());
  return ids;
}

bool other_threads_may_call_driver(const std::vector<pid_t>& known) {
  const auto ids = thread_ids();
  if (ids.empty()) return true;
  const auto self = static_cast<pid_t>(syscall(SYS_gettid));
  return std::any_of(ids.begin(), ids.end(), [&](pid_t id) {
    if (id == self || std::find(known.begin(), known.end(), id) != known.end()) return false;
    const std::string name = name_of(id);
    // One that has ended meanwhile has none.
    return !name.empty() && name.rfind("cuda", 0) != 0 && name.rfind("contextune", 0) != 0;
  });
}

void name_this_thread(const char* name) {
  (void)pthread_setname_np(pthread_self(), name);
}

}  // namespace contextune::intercept
