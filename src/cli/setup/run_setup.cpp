#include "cli/setup/run_setup.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <contextune/error.hpp>
#include <cstring>
#include <filesystem>

#include "core/value/option_table.hpp"
#include "core/value/take_until.hpp"
#include "log/run_id.hpp"

namespace contextune::cli {
namespace {

std::string absolute(std::string_view path) {
  std::error_code error;
  const std::filesystem::path result =
      std::filesystem::absolute(std::filesystem::path(path), error);
  return error ? std::string(path) : result.lexically_normal().string();
}

std::string absolute_list(std::string_view paths) {
  std::string result;
  while (!paths.empty()) {
    if (!result.empty()) result += ':';
    const std::string_view path = take_until(paths, ':');
    if (!path.empty()) result += absolute(path);
  }
  return result;
}

}  // namespace

Options options_of_environment(const Environment& environment, std::string& faults) {
  Options options;
  for (const OptionInfo& option : option_table()) {
    const char* const value = environment.find(option.variable);
    if (value == nullptr || *value == '\0') continue;
    const std::string fault = parse_option(options, option.name, value);
    if (!fault.empty()) faults += option.variable + ": " + fault + "\n";
  }
  return options;
}

RunSetup prepare_run(const RunRequest& request) {
  RunSetup setup;
  setup.environment = Environment::of_this_process();
  for (const auto& [name, text] : request.options) {
    const std::string fault = parse_option(setup.options, name, text);
    if (!fault.empty()) throw Error(fault);
    const auto table = option_table();
    const auto option = std::ranges::find_if(
        table, [&name = name](const OptionInfo& info) { return info.name == name; });
    setup.environment.set(option->variable, option_text(setup.options, name));
  }
  std::string faults;
  setup.options = options_of_environment(setup.environment, faults);
  if (!faults.empty() && !setup.options.disable) throw Error(faults.substr(0, faults.find('\n')));
  // As of the variable: a flag whose value is another variable that is not set.
  if (setup.options.log_dir.empty()) setup.options.log_dir = Options{}.log_dir;
  if (setup.options.region.empty()) {
    setup.options.region = "auto";
    setup.environment.set("CONTEXTUNE_REGION", setup.options.region);
  }
  // A run inside of a run is part of it: the outer one would miss its lines.
  const char* const outer = setup.environment.find("CONTEXTUNE_RUN_ID");
  setup.run = log::run_id_or_random(outer == nullptr ? "" : outer);
  setup.log_folder = absolute(setup.options.log_dir);
  setup.environment.set("CONTEXTUNE_RUN_ID", setup.run);
  setup.environment.set("CONTEXTUNE_LOG_DIR", setup.log_folder);
  if (!setup.options.space.empty()) {
    setup.environment.set("CONTEXTUNE_SPACE", absolute_list(setup.options.space));
  }
  if (!setup.options.cache_dir.empty()) {
    setup.environment.set("CONTEXTUNE_CACHE_DIR", absolute(setup.options.cache_dir));
  }
  setup.environment.unset("CONTEXTUNE_REPORT");  // ours alone: a run inside of this one has its own
  if (setup.options.disable) return setup;
  const std::string library = find_preload_library();
  add_preload(setup.environment, library);
  allow_sanitizer(setup.environment);
  add_nvtx_injection(setup.environment, library);
  return setup;
}

std::string why_not_writable(const std::string& folder) {
  std::filesystem::path path = absolute(folder);
  struct stat status {};
  while (stat(path.c_str(), &status) != 0) {
    if (errno != ENOENT || !path.has_relative_path()) return std::strerror(errno);
    path = path.parent_path();
  }
  if (!S_ISDIR(status.st_mode)) return std::strerror(ENOTDIR);
  return access(path.c_str(), W_OK | X_OK) == 0 ? std::string() : std::strerror(errno);
}

}  // namespace contextune::cli
