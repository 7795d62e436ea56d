#pragma once

#include <string>

#include "space/script.hpp"

namespace contextune::space {

/// Names what a function of the script does, by a hash. The hash covers the function's lines and
/// all that the function uses of the file: local functions and values, and globals that the file
/// sets. Other lines may change, and the function may move. Empty: there is no such function. Call
/// while nothing of the script runs.
[[nodiscard]] std::string function_identity(Script& script, const ScriptFunction& function);

}  // namespace contextune::space
