#include "rank/meeting/surroundings.hpp"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

#include "environment/root_folder.hpp"
#include "rank/wire/endpoint.hpp"

namespace contextune::rank {
namespace {

// A socket that was made a moment ago may be about to be listened on.
constexpr time_t leftover_seconds = 60;
constexpr std::size_t most_leftovers = 256;
constexpr int most_wrappers = 64;
// The bytes of a socket's path that its name in the folder may need.
constexpr std::size_t name_bytes = 32;
constexpr std::size_t path_bytes = 108;

bool is_private(const std::string& folder) {
  struct stat status {};
  // Not one that somebody else has laid there, nor a link to another place.
  return lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == geteuid() && (status.st_mode & 077U) == 0;
}

bool make_private(const std::string& folder) {
  if (folder.size() + name_bytes > path_bytes || root_folder_has_changed()) return false;
  static_cast<void>(mkdir(folder.c_str(), 0700));
  return is_private(folder) && access(folder.c_str(), W_OK | X_OK) == 0;
}

std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

bool has_variable(const std::string& environment, std::string_view name) {
  const std::string wanted = std::string(name) + "=";
  if (environment.starts_with(wanted)) return true;
  return environment.find(std::string(1, '\0') + wanted) != std::string::npos;
}

struct ProcessFacts {
  long parent = 0;
  std::string start;  // in clock ticks since the host was started
};

// "PID (NAME) STATE PARENT ...": the name may hold anything.
ProcessFacts facts_of(const std::string& process) {
  const std::string text = contents_of("/proc/" + process + "/stat");
  const std::size_t name_end = text.rfind(") ");
  ProcessFacts facts;
  if (name_end == std::string::npos) return facts;
  std::vector<std::string> words(1);
  for (const char c : text.substr(name_end + 2)) {
    if (c == ' ') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  constexpr std::size_t parent_word = 1;
  constexpr std::size_t start_word = 19;
  if (words.size() <= start_word) return facts;
  const std::string& parent = words[parent_word];
  std::from_chars(parent.data(), parent.data() + parent.size(), facts.parent);
  facts.start = words[start_word];
  return facts;
}

}  // namespace

std::string private_folder(const std::string& runtime_folder, const std::string& temporary_folder) {
  if (runtime_folder.starts_with('/') && is_private(runtime_folder)) {
    std::string folder = runtime_folder + "/contextune";
    if (make_private(folder)) return folder;
  }
  const std::string folder = temporary_folder + "/contextune-" + std::to_string(geteuid());
  return make_private(folder) ? folder : std::string();
}

void remove_leftovers(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(folder.c_str()), &closedir);
  if (entries == nullptr) return;
  const time_t now = time(nullptr);
  std::size_t count = 0;
  for (const dirent* entry = readdir(entries.get()); entry != nullptr && count < most_leftovers;
       entry = readdir(entries.get())) {
    const std::string path = folder + "/" + entry->d_name;
    struct stat status {};
    if (lstat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) continue;
    if (status.st_mtime + leftover_seconds > now) continue;
    ++count;
    if (is_left_over("unix:" + path)) remove_listener("unix:" + path);
  }
}

std::string starter_of_ranks(std::string_view rank_variable) {
  std::string process = "self";
  ProcessFacts facts = facts_of(process);
  for (int i = 0; i < most_wrappers && facts.parent > 0; ++i) {
    process = std::to_string(facts.parent);
    facts = facts_of(process);
    if (!has_variable(contents_of("/proc/" + process + "/environ"), rank_variable))
      return process + "-" + facts.start;
  }
  // Above all that can be seen from here, as in a container that is entered once for each rank.
  return "outside";
}

}  // namespace contextune::rank
