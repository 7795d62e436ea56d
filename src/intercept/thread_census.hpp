#pragma once

#include <sys/types.h>

#include <vector>

namespace contextune::intercept {

/// The threads of this process, sorted; empty if the system does not tell.
[[nodiscard]] std::vector<pid_t> thread_ids();

/// Whether threads of the program may be inside the driver now: any but the caller, the driver's
/// own (named cuda...), ours (named contextune...), `known`, and those of `servants`, which use the
/// driver only where the caller asks them to, that wait outside of it.
[[nodiscard]] bool other_threads_may_call_driver(const std::vector<pid_t>& known,
                                                 const std::vector<pid_t>& servants = {});

/// Whether a thread of this process waits in the kernel, and on its stack is no word that points
/// into code of the driver or of CUPTI: it has not come there from a call of theirs. False as well
/// where the system does not tell.
[[nodiscard]] bool waits_outside_driver(pid_t thread);

/// Names this thread, for debuggers and for the census.
void name_this_thread(const char* name);

}  // namespace contextune::intercept
