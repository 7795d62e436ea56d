#pragma once

#include <pthread.h>

#include <cerrno>

namespace contextune::host {

/// Keeps `errno` as the program has it, and lets nobody cancel this thread as long as it lives:
/// files are opened, written and waited for, where pthread_cancel would take effect.
class HostState {
 public:
  HostState() noexcept : error_(errno) {
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_);
  }
  ~HostState() {
    (void)pthread_setcancelstate(cancel_, nullptr);
    errno = error_;
  }
  HostState(const HostState&) = delete;
  HostState& operator=(const HostState&) = delete;

 private:
  int error_;
  int cancel_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace contextune::host
