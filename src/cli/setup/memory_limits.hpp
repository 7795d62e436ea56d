#pragma once

#include <string>

namespace contextune::cli {

/// Why programs that are started from here are left alone for want of memory: a limit (ulimit -d or
/// -v) leaves so little that they need it themselves. "" where it is not so.
[[nodiscard]] std::string memory_obstacle();

}  // namespace contextune::cli
