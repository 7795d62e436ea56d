#include "intercept/host/signal_frame.hpp"

#include <unwind.h>

namespace contextune::intercept {
namespace {

_Unwind_Reason_Code look(_Unwind_Context* frame, void* found) {
  int interrupted = 0;
  (void)_Unwind_GetIPInfo(frame, &interrupted);
  if (interrupted == 0) return _URC_NO_REASON;
  *static_cast<bool*>(found) = true;
  return _URC_END_OF_STACK;
}

}  // namespace

bool is_in_signal_handler() noexcept {
  bool found = false;
  (void)_Unwind_Backtrace(look, &found);
  return found;
}

}  // namespace contextune::intercept
