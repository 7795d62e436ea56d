#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace contextune::cli {

/// The variables that a program is to be started with. A value.
class Environment {
 public:
  Environment() = default;
  /// Those of this process.
  [[nodiscard]] static Environment of_this_process();

  /// The variable's value, or null.
  [[nodiscard]] const char* find(std::string_view name) const;
  void set(std::string_view name, std::string_view value);
  void unset(std::string_view name);

  /// "NAME=value" each, in order.
  [[nodiscard]] const std::vector<std::string>& entries() const { return entries_; }

 private:
  std::vector<std::string> entries_;
};

/// Has `library` loaded before the program, behind what the user preloads. Another place in that
/// list than the last would make the user's own interposers see us as the program.
/// @throws Error if the path cannot be written in LD_PRELOAD
void add_preload(Environment& environment, const std::string& library);

/// Lets programs start that are linked with the address sanitizer's library: it ends them where
/// anything is loaded before it, unless it is told not to look. The user's own word on that stands.
void allow_sanitizer(Environment& environment);

/// Has NVTX ranges shown to `library`; an injector of the user's own is kept in
/// CONTEXTUNE_NVTX_CHAIN, and the frontend starts it first.
void add_nvtx_injection(Environment& environment, const std::string& library);

/// libcontextune_preload.so beside this executable, in the build tree as in an installed one.
/// @throws Error that names where it was looked for
[[nodiscard]] std::string find_preload_library();

}  // namespace contextune::cli
