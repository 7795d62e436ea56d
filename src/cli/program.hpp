#pragma once

#include <signal.h>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/environment.hpp"
#include "cli/group_witness.hpp"

namespace contextune::cli {

/// A program that runs as this process's child, in the same process group, with the descriptors,
/// the signal mask and the dispositions that this process was started with. It dies with this
/// process, which may be killed where no signal can be passed on.
/// Not thread-safe: made and used on the main thread, once in a process.
class Program {
 public:
  /// Starts it. From now on this process takes signals only inside wait().
  Program(const std::vector<std::string>& command, const Environment& environment);

  /// `errno` of why it could not be started; 0 if it was.
  [[nodiscard]] int start_error() const { return start_error_; }

  /// Waits for its end. Meanwhile passes on the signals that another process sent to this one
  /// alone, and stops and goes on together with the program.
  /// @param period_seconds how often `tick` is called; 0: never
  /// @return what waitpid tells of the end
  [[nodiscard]] int wait(double period_seconds, const std::function<void()>& tick);

 private:
  [[noreturn]] void become(const std::vector<std::string>& command, const Environment& environment,
                           pid_t parent, int error_pipe) const;
  void take_signal(const siginfo_t& signal);
  void stop_too();

  pid_t pid_ = -1;
  int start_error_ = 0;
  sigset_t taken_{};  // the signals that wait() takes
  sigset_t mask_at_start_{};
  struct sigaction child_action_at_start_ {};
  std::unique_ptr<GroupWitness> witness_;
};

/// What a shell ends with if a program cannot be started: 127 if there is none, else 126.
[[nodiscard]] int exit_status_of_start_error(int error);

/// Ends this process as the program ended: with its exit status, or by the same signal, without a
/// core dump of our own.
[[noreturn]] void end_like(int wait_status);

}  // namespace contextune::cli
