#pragma once

#include <vector>

namespace contextune::cli {

/// Lets go of every open descriptor but these; 0, 1 and 2 then lead to /dev/null. A descriptor left
/// open in a process that only waits would hide from its other end that the program has closed it.
void close_all_but(const std::vector<int>& kept);

}  // namespace contextune::cli
