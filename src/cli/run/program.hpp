#pragma once

#include <signal.h>
#include <sys/time.h>
#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/run/group_witness.hpp"
#include "cli/setup/environment.hpp"

namespace contextune::cli {

/// The functions that are called while a program runs.
struct ProgramEvents {
  double period_seconds = 0;   ///< how often `tick` is called; 0: never
  std::function<void()> tick;  ///< may be empty if it is never called
  /// A process ended; before anything else is said of that.
  std::function<void(pid_t process, int wait_status)> ended;
  /// A process of several ended, and not with status 0, while others still run.
  std::function<void(std::size_t process, int wait_status)> failed;
};

/// A program that runs as this process's child, or several times as its children, in the same
/// process group. It has the descriptors, the signal mask, the dispositions and the interval timers
/// that this process was started with. Only the first of several reads the standard input. They die
/// with this process, which may be killed where no signal can be passed on. Not thread-safe: made
/// and used on the main thread, once in a process.
class Program {
 public:
  /// Starts it once for each environment. From now on this process takes signals only inside
  /// wait().
  Program(const std::vector<std::string>& command, const std::vector<Environment>& environments);

  /// `errno` of why it could not be started; 0 if it was.
  [[nodiscard]] int start_error() const { return start_error_; }

  /// Once a process has failed, sends SIGTERM to the others, and SIGKILL to those that are still
  /// there after so many seconds. At 0, the default, the others go on.
  void end_all_on_failure(double seconds) { grace_seconds_ = seconds; }

  /// Waits for the end of all. Meanwhile passes on the signals that another process sent to this
  /// one alone, and stops and goes on together with them.
  /// @return what waitpid tells of the end, of several that of the first that failed
  [[nodiscard]] int wait(const ProgramEvents& events);

 private:
  struct Process {
    pid_t pid = -1;
    bool running = true;
    bool stopped = false;
  };

  void start(const std::vector<std::string>& command, const Environment& environment);
  [[noreturn]] void become(const std::vector<std::string>& command, const Environment& environment,
                           pid_t parent, int error_pipe) const;
  void take_signal(const siginfo_t& info);
  void reap(const ProgramEvents& events);
  void note_end(std::size_t process, int status, const ProgramEvents& events);
  void signal_all(int signal) const;
  void end_those_that_stay();
  void stop_too();
  [[nodiscard]] bool some_run() const;
  [[nodiscard]] bool all_stopped() const;

  std::vector<Process> processes_;
  int start_error_ = 0;
  int status_ = 0;
  bool followed_ = false;     // this process has stopped as well, since one of them last did
  double grace_seconds_ = 0;  // 0: the others go on
  std::optional<std::chrono::steady_clock::time_point> kill_at_;
  sigset_t taken_{};  // the signals that wait() takes
  sigset_t mask_at_start_{};
  static constexpr std::size_t num_timers = 3;
  std::array<itimerval, num_timers> timers_at_start_{};  // they outlive an exec, not a fork
  struct sigaction child_action_at_start_ {};
  std::unique_ptr<GroupWitness> witness_;
};

/// The exit status of a shell that cannot start a program: 127 if there is none, else 126.
[[nodiscard]] int exit_status_of_start_error(int error);

/// Ends this process as the program ended: with its exit status, or by the same signal, without a
/// core dump of our own.
[[noreturn]] void end_like(int wait_status);

}  // namespace contextune::cli
