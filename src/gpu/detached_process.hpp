#pragma once

#include <string>
#include <vector>

namespace contextune::gpu {

/// Runs a program without becoming its parent, and returns all that it writes to its standard
/// output: the process that we are in never sees it in wait() and gets no SIGCHLD. The program gets
/// none of our descriptors, a clear signal mask, and an environment without what preloads or
/// injects libraries. Any thread.
/// @param command      the path of the program and its arguments
/// @param library_path its LD_LIBRARY_PATH
/// @throws Error if it cannot be started, or has not closed its output after so many seconds
[[nodiscard]] std::string output_of_detached(const std::vector<std::string>& command,
                                             const std::string& library_path, double seconds);

}  // namespace contextune::gpu
