#pragma once

#include <signal.h>

#include <functional>

namespace contextune::host {

/// Blocks all signals on this thread as long as it lives. Threads that are started meanwhile keep
/// them blocked: no signal handler of the program runs on a thread that the program does not know.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t all;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { (void)pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

/// Names this thread, for debuggers, and for us to tell our threads from the program's.
void name_this_thread(const char* name) noexcept;

/// Starts a thread of ours that nobody joins, so `body` owns what it uses. No signal handler of the
/// program runs on it.
/// @throws std::system_error, std::bad_alloc
void start_own_thread(const char* name, std::function<void()> body);

}  // namespace contextune::host
