#include "process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <system_error>

#include "tests/scratch_folder.hpp"

extern char** environ;

namespace contextune::test {
namespace {

/// A file that is gone when it is closed.
class TemporaryFile {
 public:
  TemporaryFile() : file_(std::tmpfile()) {
    if (file_ == nullptr) throw std::system_error(errno, std::generic_category(), "tmpfile");
  }
  ~TemporaryFile() { std::fclose(file_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  int descriptor() const { return fileno(file_); }

  void write(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), file_);
    std::fflush(file_);
    std::rewind(file_);
  }

  std::string read() {
    std::string text;
    std::array<char, 4096> buffer{};
    std::rewind(file_);
    while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), file_)) {
      text.append(buffer.data(), got);
    }
    return text;
  }

 private:
  std::FILE* file_;
};

std::vector<std::string> child_environment(const Environment& added) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    const bool ours =
        name.starts_with("CONTEXTUNE_") || name.starts_with("LD_") || name.starts_with("NVTX_");
    if (!ours && !added.contains(name)) result.push_back(text);
  }
  for (const auto& [name, value] : added) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

void add_preload(Environment& environment, const std::string& library) {
  std::string& preload = environment["LD_PRELOAD"];
  preload += (preload.empty() ? "" : ":") + library;
}

}  // namespace

bool Outcome::exited_with(int code) const {
  return WIFEXITED(status) && WEXITSTATUS(status) == code;
}

Outcome run(const std::vector<std::string>& command, const Environment& environment,
            const std::string& input) {
  TemporaryFile in;
  TemporaryFile out;
  TemporaryFile err;
  in.write(input);
  std::vector<std::string> arguments = command;
  std::vector<std::string> variables = child_environment(environment);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.descriptor(), 0);
  posix_spawn_file_actions_adddup2(&actions, out.descriptor(), 1);
  posix_spawn_file_actions_adddup2(&actions, err.descriptor(), 2);
  pid_t child = 0;
  const int error = posix_spawnp(&child, command.front().c_str(), &actions, nullptr,
                                 pointers(arguments).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::system_error(error, std::generic_category(), command.front());
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "waitpid");
  }
  return {status, out.read(), err.read()};
}

Outcome run_preloaded(const std::vector<std::string>& command, Environment environment,
                      const std::string& input) {
  add_preload(environment, CONTEXTUNE_PRELOAD_ALONE);
  return run(command, environment, input);
}

Recorded run_recorded(const std::vector<std::string>& command, Environment environment) {
  const ScratchFolder folder;
  const std::string record = folder.path("record");
  environment["CONTEXTUNE_TEST_RECORD"] = record;
  add_preload(environment, CONTEXTUNE_PRELOAD_WITH_CORE);
  Recorded result{run(command, environment), {}};
  std::ostringstream text;
  if (std::ifstream file{record}) text << file.rdbuf();
  result.record = text.str();
  return result;
}

std::string client(const std::string& name) {
  return std::string(CONTEXTUNE_CLIENTS) + "/" + name;
}

bool installed(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::size_t count_lines(const std::string& text, const std::string& line) {
  const std::vector<std::string> lines = lines_of(text);
  return static_cast<std::size_t>(std::count(lines.begin(), lines.end(), line));
}

}  // namespace contextune::test
