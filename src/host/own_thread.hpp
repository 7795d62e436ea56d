#pragma once

#include <pthread.h>
#include <signal.h>
#include <sys/types.h>

#include <functional>
#include <thread>

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

/// While one lives, nobody can take the thread that is being started for the program's; afterwards
/// it is known as ours until it has named itself. For threads that own_thread() cannot start.
class OwnThreadStart {
 public:
  OwnThreadStart();
  ~OwnThreadStart();
  OwnThreadStart(const OwnThreadStart&) = delete;
  OwnThreadStart& operator=(const OwnThreadStart&) = delete;

  /// It has begun, and calls name_this_thread().
  static void begun(pthread_t thread) noexcept;
};

/// Names this thread, for debuggers, and for us to tell our threads from the program's.
void name_this_thread(const char* name) noexcept;

/// Whether a thread of ours has begun and has not named itself yet. Asked before its name is read:
/// then one or the other tells that it is ours, at any moment.
[[nodiscard]] bool is_unnamed_own_thread(pid_t thread);

/// Starts a thread of ours. No signal handler of the program runs on it.
/// @throws std::system_error, std::bad_alloc
[[nodiscard]] std::thread own_thread(const char* name, std::function<void()> body);

/// The same for one that nobody joins, so `body` owns what it uses.
/// @throws std::system_error, std::bad_alloc
void start_own_thread(const char* name, std::function<void()> body);

}  // namespace contextune::host
