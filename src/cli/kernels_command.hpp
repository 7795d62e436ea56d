#pragma once

#include "cli/words/command_line.hpp"

namespace contextune::cli {

/// `contextune kernels`: lists the kernels in files. @return its exit status
[[nodiscard]] int kernels_command(const KernelsRequest& request);

}  // namespace contextune::cli
