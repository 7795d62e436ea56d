#pragma once

#include <optional>
#include <string>
#include <vector>

namespace contextune::cli {

/// The file that `program` would run, looked for as a shell does; empty if there is none.
[[nodiscard]] std::optional<std::string> find_program(const std::string& program);

/// Why a library cannot be preloaded into the program, a sentence each: it is static, takes other
/// rights (setuid), is of another architecture or another C library. For a script, its interpreter
/// is looked at. Empty: nothing is in the way.
[[nodiscard]] std::vector<std::string> preload_obstacles(const std::string& program);

}  // namespace contextune::cli
