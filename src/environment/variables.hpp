#pragma once

#include <string_view>
#include <vector>

namespace contextune {

/// Takes a copy of the environment, and looks at nothing else from then on. A program may call
/// setenv on another thread at any time, and glibc lets nobody read the environment meanwhile. Done
/// once, while the program is inside cuInit, where the driver reads it as well.
void keep_variables();

/// The value of a variable, for ever once they are kept; null: it is not set.
[[nodiscard]] const char* variable(std::string_view name) noexcept;

/// As variable, but null in a program that runs for another user.
[[nodiscard]] const char* trusted_variable(std::string_view name) noexcept;

/// All of them, each NAME=VALUE.
[[nodiscard]] std::vector<std::string_view> variables();

}  // namespace contextune
