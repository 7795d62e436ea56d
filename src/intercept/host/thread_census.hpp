#pragma once

#include <sys/types.h>

#include <vector>

namespace contextune::intercept {

/// The threads of this process, sorted; empty if the system does not tell.
[[nodiscard]] std::vector<pid_t> thread_ids();

/// Whether threads of the program may be inside the driver now: any but the caller, the driver's
/// own (named cuda...), ours (named contextune...), and `known`.
[[nodiscard]] bool other_threads_may_call_driver(const std::vector<pid_t>& known);

/// Whether each of these threads of this process has ended, or waits in the kernel outside of calls
/// of the driver and of CUPTI. A thread counts as outside if no word on its stack points into their
/// code. False as well where the system does not tell. Reads /proc/self/maps: milliseconds.
[[nodiscard]] bool all_wait_outside_driver(const std::vector<pid_t>& threads);

}  // namespace contextune::intercept
