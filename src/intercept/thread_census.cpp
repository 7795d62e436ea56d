#include "intercept/thread_census.hpp"

#include <dirent.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace contextune::intercept {
namespace {

std::string name_of(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

struct Range {
  std::uintptr_t begin;
  std::uintptr_t end;

  [[nodiscard]] bool holds(std::uintptr_t address) const noexcept {
    return address >= begin && address < end;
  }
};

/// Where a thread waits in the kernel.
struct Waiting {
  std::uintptr_t stack = 0;
  std::uintptr_t code = 0;

  [[nodiscard]] bool operator==(const Waiting& other) const = default;
};

/// Absent: it runs, or has ended, or the system does not tell.
std::optional<Waiting> waiting_of(pid_t thread) {
  // "NUMBER ARGUMENT*6 STACK CODE", or "-1 STACK CODE" outside of a system call, or "running".
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/syscall");
  std::vector<std::string> words;
  for (std::string word; file >> word;) words.push_back(word);
  if (words.size() != 9) return std::nullopt;
  return Waiting{std::strtoull(words[7].c_str(), nullptr, 16),
                 std::strtoull(words[8].c_str(), nullptr, 16)};
}

bool is_of_driver(const std::string& path) {
  const std::string file = path.substr(path.rfind('/') + 1);
  return file.rfind("libcuda.", 0) == 0 || file.rfind("libcupti.", 0) == 0 ||
         file.rfind("libnvidia-", 0) == 0;
}

/// The rest of the memory that `address` is in, and in `code` all code of the driver.
Range look_at_memory(std::uintptr_t address, std::vector<Range>& code) {
  std::ifstream maps("/proc/self/maps");
  Range found{0, 0};
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    char dash = 0;
    std::string permissions;
    std::string offset;
    std::string device;
    std::string inode;
    std::string path;
    Range range{};
    words >> std::hex >> range.begin >> dash >> range.end >> permissions >> offset >> device >>
        inode >> path;
    if (range.holds(address)) found = {address, range.end};
    if (permissions.size() > 2 && permissions[2] == 'x' && is_of_driver(path))
      code.push_back(range);
  }
  return found;
}

constexpr std::size_t largest_stack = std::size_t{1} << 20U;

}  // namespace

bool waits_outside_driver(pid_t thread) {
  const std::optional<Waiting> waiting = waiting_of(thread);
  if (!waiting) return false;
  std::vector<Range> code;
  const Range stack = look_at_memory(waiting->stack, code);
  const std::size_t bytes = stack.end - stack.begin;
  if (bytes == 0 || bytes > largest_stack || stack.begin % sizeof(std::uintptr_t) != 0)
    return false;
  std::vector<std::uintptr_t> words(bytes / sizeof(std::uintptr_t));
  // It may end meanwhile, and its stack with it.
  const iovec here{words.data(), words.size() * sizeof(std::uintptr_t)};
  const iovec there{reinterpret_cast<void*>(stack.begin), here.iov_len};
  if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != static_cast<ssize_t>(here.iov_len))
    return false;
  const bool is_clear = std::none_of(words.begin(), words.end(), [&](std::uintptr_t word) {
    return std::any_of(code.begin(), code.end(),
                       [&](const Range& range) { return range.holds(word); });
  });
  return is_clear && waiting_of(thread) == waiting;
}

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

bool other_threads_may_call_driver(const std::vector<pid_t>& known,
                                   const std::vector<pid_t>& servants) {
  const auto ids = thread_ids();
  if (ids.empty()) return true;
  const auto self = static_cast<pid_t>(syscall(SYS_gettid));
  return std::any_of(ids.begin(), ids.end(), [&](pid_t id) {
    if (id == self || std::find(known.begin(), known.end(), id) != known.end()) return false;
    const std::string name = name_of(id);
    // One that has ended meanwhile has none.
    if (name.empty() || name.rfind("cuda", 0) == 0 || name.rfind("contextune", 0) == 0)
      return false;
    return std::find(servants.begin(), servants.end(), id) == servants.end() ||
           !waits_outside_driver(id);
  });
}

void name_this_thread(const char* name) {
  (void)pthread_setname_np(pthread_self(), name);
}

}  // namespace contextune::intercept
