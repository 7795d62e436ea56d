#pragma once

#include "cli/words/command_line.hpp"

namespace contextune::cli {

/// `contextune build`. @return its exit status
[[nodiscard]] int build_command(const BuildRequest& request);

}  // namespace contextune::cli
