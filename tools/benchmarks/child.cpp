#include "child.hpp"

#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

extern char** environ;

namespace bench {
namespace {

std::string name_of(const std::string& setting) {
  return setting.substr(0, setting.find('='));
}

std::vector<std::string> environment_with(const std::vector<std::string>& settings) {
  const auto changes = [&](const std::string& name) {
    return std::any_of(settings.begin(), settings.end(),
                       [&](const auto& setting) { return name_of(setting) == name; });
  };
  std::vector<std::string> environment;
  // What one run has found would spare the next one its tuning.
  const std::string store = "CONTEXTUNE_STORE";
  if (!changes(store)) environment.push_back(store + "=off");
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string name = name_of(*entry);
    if (name != store && !changes(name)) environment.emplace_back(*entry);
  }
  for (const std::string& setting : settings)
    if (setting.find('=') != setting.npos) environment.push_back(setting);
  return environment;
}

/// Pointers into `texts`, ended by null.
std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

std::string this_program() {
  return std::filesystem::read_symlink("/proc/self/exe");
}

void run_program(const std::vector<std::string>& arguments,
                 const std::vector<std::string>& settings) {
  std::vector<std::string> texts = arguments;
  std::vector<std::string> environment = environment_with(settings);
  pid_t child = 0;
  if (posix_spawn(&child, texts.front().c_str(), nullptr, nullptr, pointers(texts).data(),
                  pointers(environment).data()) != 0) {
    throw std::runtime_error("cannot run " + arguments.front());
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw std::runtime_error(arguments.front() + " failed");
  }
}

}  // namespace bench
