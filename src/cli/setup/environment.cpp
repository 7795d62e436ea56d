#include "cli/setup/environment.hpp"

#include <unistd.h>

#include <algorithm>
#include <contextune/error.hpp>
#include <filesystem>
#include <system_error>

namespace contextune::cli {
namespace {

constexpr std::string_view preload_variable = "LD_PRELOAD";
constexpr std::string_view nvtx_variable = "NVTX_INJECTION64_PATH";
constexpr std::string_view chain_variable = "CONTEXTUNE_NVTX_CHAIN";

bool is_variable(const std::string& entry, std::string_view name) {
  return entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=';
}

bool lists(std::string_view value, std::string_view library) {
  while (!value.empty()) {
    const std::size_t end = std::min(value.find_first_of(": "), value.size());
    if (value.substr(0, end) == library) return true;
    value.remove_prefix(std::min(end + 1, value.size()));
  }
  return false;
}

}  // namespace

Environment Environment::of_this_process() {
  Environment result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    result.entries_.emplace_back(*entry);
  }
  return result;
}

const char* Environment::find(std::string_view name) const {
  for (const std::string& entry : entries_) {
    if (is_variable(entry, name)) return entry.c_str() + name.size() + 1;
  }
  return nullptr;
}

void Environment::set(std::string_view name, std::string_view value) {
  const std::string entry = std::string(name).append("=").append(value);
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const std::string& e) { return is_variable(e, name); });
  if (found != entries_.end()) {
    *found = entry;
  } else {
    entries_.push_back(entry);
  }
}

void Environment::unset(std::string_view name) {
  std::erase_if(entries_, [&](const std::string& entry) { return is_variable(entry, name); });
}

void add_preload(Environment& environment, const std::string& library) {
  if (library.find_first_of(": ") != std::string::npos) {
    throw Error("LD_PRELOAD cannot name " + library +
                ": the path holds a blank or a colon; install contextune in another folder");
  }
  const char* const present = environment.find(preload_variable);
  const std::string users = present != nullptr ? present : "";
  if (lists(users, library)) return;
  environment.set(preload_variable, users.empty() ? library : users + ":" + library);
}

void allow_sanitizer(Environment& environment) {
  const char* const present = environment.find("ASAN_OPTIONS");
  const std::string users = present != nullptr ? present : "";
  if (users.find("verify_asan_link_order") != users.npos) return;
  environment.set("ASAN_OPTIONS",
                  (users.empty() ? users : users + ":") + "verify_asan_link_order=0");
}

void add_nvtx_injection(Environment& environment, const std::string& library) {
  const char* const present = environment.find(nvtx_variable);
  const std::string users = present != nullptr ? present : "";
  if (users == library) return;
  if (!users.empty()) environment.set(chain_variable, users);
  environment.set(nvtx_variable, library);
}

std::string find_preload_library() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) throw Error("cannot read /proc/self/exe: " + error.message());
  const fs::path prefix = self.parent_path().parent_path();
  const fs::path name = "libcontextune_preload.so";
  const fs::path usual = prefix / "lib" / name;
  for (const fs::path& path :
       {usual, prefix / CONTEXTUNE_LIBRARY_FOLDER / name, prefix / "lib64" / name}) {
    if (fs::exists(path, error)) return path.lexically_normal().string();
  }
  throw Error("cannot find " + usual.string() +
              ", which is loaded into the program; build the whole project, or install it again");
}

}  // namespace contextune::cli
