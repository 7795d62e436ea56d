#pragma once

#include <string>
#include <vector>

#include "gpu/driver/nvrtc_library.hpp"

namespace contextune::gpu {

/// The answer of `contextune build`, which build_source reads: the kernel's symbol, image and PTX.
[[nodiscard]] std::string build_reply(const CompiledSource& compiled);

/// Builds a kernel from CUDA C++ with NVRTC, in a process of its own (`contextune build`). NVRTC
/// takes its tables down when a program exits, and a build that is under way then crashes the
/// program. Waiting for the build or cancelling it does not help, as the tables that a build makes
/// go first. Takes seconds. Parameters as NvrtcLibrary::compile's, and environment_for_detached.
/// @throws Error with the first lines of the compiler's log, or because the command is not there
[[nodiscard]] CompiledSource build_source(const std::string& path,
                                          const std::vector<std::string>& options,
                                          const std::string& name_expression,
                                          int compute_capability,
                                          std::vector<std::string> environment);

}  // namespace contextune::gpu
