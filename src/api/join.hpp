#pragma once

namespace contextune::api {

/// contextune_join() in the copy that runs.
int join(void* communicator, double seconds) noexcept;

}  // namespace contextune::api
