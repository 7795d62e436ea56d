#include "intercept/host/thread_census.hpp"

#include <dirent.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "host/own_thread.hpp"

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

struct Mappings {
  std::vector<Range> all;
  std::vector<Range> code_of_driver;
};

Mappings read_mappings() {
  Mappings mappings;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    // "BEGIN-END PERMISSIONS ... PATH"
    char* rest = nullptr;
    Range range{};
    range.begin = std::strtoull(line.c_str(), &rest, 16);
    if (*rest == '-') range.end = std::strtoull(rest + 1, &rest, 16);
    mappings.all.push_back(range);
    const bool is_code = std::strlen(rest) > 4 && rest[3] == 'x';
    if (is_code && is_of_driver(line)) mappings.code_of_driver.push_back(range);
  }
  return mappings;
}

constexpr std::size_t largest_stack = std::size_t{1} << 20U;

/// The words from `stack` to the end of the memory that it is in; empty: it is too much, or gone.
std::vector<std::uintptr_t> words_from(std::uintptr_t stack, const Mappings& mappings) {
  const auto place = std::find_if(mappings.all.begin(), mappings.all.end(),
                                  [&](const Range& range) { return range.holds(stack); });
  if (place == mappings.all.end() || stack % sizeof(std::uintptr_t) != 0 ||
      place->end - stack > largest_stack) {
    return {};
  }
  std::vector<std::uintptr_t> words((place->end - stack) / sizeof(std::uintptr_t));
  // The thread may end meanwhile, and its stack with it.
  const iovec here{words.data(), words.size() * sizeof(std::uintptr_t)};
  const iovec there{reinterpret_cast<void*>(stack), here.iov_len};
  const bool all =
      process_vm_readv(getpid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(here.iov_len);
  return all ? words : std::vector<std::uintptr_t>{};
}

bool waits_outside_driver(pid_t thread, const Mappings& mappings) {
  const std::optional<Waiting> waiting = waiting_of(thread);
  if (!waiting) return false;
  const std::vector<std::uintptr_t> words = words_from(waiting->stack, mappings);
  const bool is_clear = std::none_of(words.begin(), words.end(), [&](std::uintptr_t word) {
    return std::any_of(mappings.code_of_driver.begin(), mappings.code_of_driver.end(),
                       [&](const Range& range) { return range.holds(word); });
  });
  return !words.empty() && is_clear && waiting_of(thread) == waiting;
}

}  // namespace

bool all_wait_outside_driver(const std::vector<pid_t>& threads) {
  const std::vector<pid_t> alive = thread_ids();
  std::vector<pid_t> watched;
  std::set_intersection(threads.begin(), threads.end(), alive.begin(), alive.end(),
                        std::back_inserter(watched));
  if (alive.empty() || watched.empty()) return !alive.empty();
  const Mappings mappings = read_mappings();
  return std::all_of(watched.begin(), watched.end(),
                     [&](pid_t thread) { return waits_outside_driver(thread, mappings); });
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

bool other_threads_may_call_driver(const std::vector<pid_t>& known) {
  const auto ids = thread_ids();
  if (ids.empty()) return true;
  const auto self = static_cast<pid_t>(syscall(SYS_gettid));
  return std::any_of(ids.begin(), ids.end(), [&](pid_t id) {
    if (id == self || std::find(known.begin(), known.end(), id) != known.end()) return false;
    if (host::is_unnamed_own_thread(id)) return false;
    const std::string name = name_of(id);
    // A thread that has ended meanwhile has none.
    return !name.empty() && name.rfind("cuda", 0) != 0 && name.rfind("contextune", 0) != 0;
  });
}

}  // namespace contextune::intercept
