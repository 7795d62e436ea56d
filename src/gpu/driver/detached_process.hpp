#pragma once

#include <string>
#include <vector>

namespace contextune::gpu {

/// The variables of this process but for those that preload or inject libraries, and ours.
/// The program may change its environment meanwhile, so this is for a thread of the program's.
[[nodiscard]] std::vector<std::string> environment_for_detached();

/// Runs a program without becoming its parent, and returns all that it writes to its standard
/// output. The process that we are in never sees the program in wait() and gets no SIGCHLD, not
/// even as process 1 of a container. The program gets none of our descriptors and a clear signal
/// mask. Any thread, which stands still meanwhile; exit() does not wait for it.
/// @param command     the path of the program and its arguments
/// @param environment its variables
/// @throws Error if it cannot be started, or has not ended after so many seconds and was killed
[[nodiscard]] std::string output_of_detached(const std::vector<std::string>& command,
                                             const std::vector<std::string>& environment,
                                             double seconds);

}  // namespace contextune::gpu
