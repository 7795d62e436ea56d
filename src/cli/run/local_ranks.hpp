#pragma once

#include <string>
#include <vector>

#include "cli/setup/environment.hpp"

namespace contextune::cli {

/// The environments in which so many ranks on this host are started. Contextune's own variables
/// hold the rank's number, the number of ranks, where they meet, and the secret. RANK, WORLD_SIZE
/// and LOCAL_RANK are added for programs that read those, unless the user has set one of them.
/// @throws Error if the system has no random numbers
[[nodiscard]] std::vector<Environment> environments_of_ranks(const Environment& base,
                                                             int num_ranks);

/// "rank 2 was killed by signal 11 (Segmentation fault)", "rank 2 ended with status 3".
[[nodiscard]] std::string end_of_rank(std::size_t rank, int wait_status);
[[nodiscard]] std::string end_of_process(pid_t process, int wait_status);

}  // namespace contextune::cli
