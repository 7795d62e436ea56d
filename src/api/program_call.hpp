#pragma once

#include "api/thread_end.h"

namespace contextune::api {

/// Thrown through our functions where the calling thread ends in the program's; no handler but that
/// of outermost_call() may catch it.
struct ThreadEnds {
  contextune_thread_end how;
};

/// Calls a callback of the program, from beneath outermost_call().
/// @throws ThreadEnds
template <class Call>
int call_program(const Call& call) {
  struct Made {
    const Call& call;
    int status;
  } made{call, 0};
  ThreadEnds ends;
  const auto make = [](void* user) {
    auto& it = *static_cast<Made*>(user);
    it.status = it.call();
  };
  if (contextune_call_program(make, &made, &ends.how) != 0) throw ends;
  return made.status;
}

/// Does the work of a C function, in which the thread may end. The C function itself has nothing to
/// destroy, and ends the thread after this: see thread_end.h.
/// @param call throws nothing but ThreadEnds
/// @return whether the thread ends
template <class Call>
[[gnu::noinline, nodiscard]] bool outermost_call(const Call& call, int& status,
                                                 contextune_thread_end& end) noexcept {
  try {
    status = call();
    return false;
  } catch (const ThreadEnds& ends) {
    end = ends.how;
    return true;
  }
}

/// The whole of such a C function.
template <class Call>
int with_thread_end(const Call& call) {
  int status = 0;
  contextune_thread_end end;
  if (outermost_call(call, status, end)) contextune_end_thread(&end);
  return status;
}

}  // namespace contextune::api
