#pragma once

#include <string>

#include "space/script.hpp"

namespace contextune::space {

/// Names what a function of the script does: a hash of the lines that it stands in, and of all that
/// it uses of the file, which is local functions and values, and the globals that the file sets.
/// Other lines may change, and it may move. Empty: there is no such function.
/// Call while nothing of the script runs.
[[nodiscard]] std::string function_identity(Script& script, const ScriptFunction& function);

}  // namespace contextune::space
