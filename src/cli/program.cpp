#include "cli/program.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <ctime>

namespace contextune::cli {
namespace {

// Signals by which the kernel says that this very process has gone wrong.
constexpr std::array<int, 6> own_faults = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};

std::vector<char*> pointers_of(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

timespec timespec_of(double seconds) {
  const double whole = std::floor(seconds);
  return {static_cast<time_t>(whole), static_cast<long>((seconds - whole) * 1e9)};
}

}  // namespace

Program::Program(const std::vector<std::string>& command, const Environment& environment) {
  sigfillset(&taken_);
  for (const int fault : own_faults) sigdelset(&taken_, fault);
  sigprocmask(SIG_BLOCK, &taken_, &mask_at_start_);
  // Ignored, as some daemons leave it, it would make the program's status vanish.
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &by_default, &child_action_at_start_);

  std::array<int, 2> error_pipe{-1, -1};
  if (pipe2(error_pipe.data(), O_CLOEXEC) != 0) {
    start_error_ = errno;
    return;
  }
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) become(command, environment, parent, error_pipe[1]);
  start_error_ = pid_ < 0 ? errno : 0;
  close(error_pipe[1]);
  int error = 0;
  ssize_t count = -1;
  do {
    count = read(error_pipe[0], &error, sizeof error);
  } while (count < 0 && errno == EINTR);
  close(error_pipe[0]);
  if (count == static_cast<ssize_t>(sizeof error)) {
    start_error_ = error;
    waitpid(pid_, nullptr, 0);
  }
}

void Program::become(const std::vector<std::string>& command, const Environment& environment,
                     pid_t parent, int error_pipe) const {
  // SIGKILL cannot be passed on; without this it would leave the program running.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(125);
  sigaction(SIGCHLD, &child_action_at_start_, nullptr);
  sigprocmask(SIG_SETMASK, &mask_at_start_, nullptr);
  const std::vector<char*> arguments = pointers_of(command);
  const std::vector<char*> variables = pointers_of(environment.entries());
  execvpe(arguments[0], arguments.data(), variables.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(error_pipe, &error, sizeof error);
  _exit(127);
}

int Program::wait(double period_seconds, const std::function<void()>& tick) {
  witness_ = std::make_unique<GroupWitness>();
  const timespec period = timespec_of(period_seconds);
  for (;;) {
    siginfo_t info{};
    const int signal = sigtimedwait(&taken_, &info, period_seconds > 0 ? &period : nullptr);
    if (signal > 0 && signal != SIGCHLD) take_signal(info);
    int status = 0;
    const pid_t changed = waitpid(pid_, &status, WNOHANG | WUNTRACED);
    if (changed == pid_ && WIFSTOPPED(status)) {
      stop_too();
    } else if (changed == pid_ || (changed < 0 && errno == ECHILD)) {
      witness_.reset();
      return status;
    }
    if (signal < 0 && errno != EINTR && period_seconds > 0) tick();
  }
}

void Program::take_signal(const siginfo_t& info) {
  const int signal = info.si_signo;
  const bool to_group = witness_->saw(signal) && getpgid(pid_) == getpgrp();
  if (to_group && signal < SIGRTMIN) {
    // `timeout` sends to us and then to the group: the program has got one by now, as it would have
    // if the two had met in its queue.
    sigset_t same;
    sigemptyset(&same);
    sigaddset(&same, signal);
    const timespec no_time{0, 0};
    sigtimedwait(&same, nullptr, &no_time);
  }
  const bool from_process =
      info.si_code == SI_USER || info.si_code == SI_QUEUE || info.si_code == SI_TKILL;
  // What the terminal sends, it sends to the program as well; and a report that cannot be written
  // (SIGPIPE, SIGXFSZ) is our own trouble.
  if (!from_process || to_group || info.si_pid == pid_ || info.si_pid == getpid()) return;
  if (info.si_code == SI_QUEUE) {
    sigqueue(pid_, signal, info.si_value);
  } else {
    kill(pid_, signal);
  }
}

// Stops this process, for the shell to see that the job has stopped. Where no shell could wake it
// again the kernel lets it run on.
void Program::stop_too() {
  struct sigaction by_default {};
  struct sigaction before {};
  by_default.sa_handler = SIG_DFL;
  sigaction(SIGTSTP, &by_default, &before);
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  raise(SIGTSTP);
  sigprocmask(SIG_UNBLOCK, &stop, nullptr);
  sigprocmask(SIG_BLOCK, &stop, nullptr);
  sigaction(SIGTSTP, &before, nullptr);
}

int exit_status_of_start_error(int error) {
  return error == ENOENT ? 127 : 126;
}

void end_like(int wait_status) {
  if (!WIFSIGNALED(wait_status)) _exit(WEXITSTATUS(wait_status));
  const int signal = WTERMSIG(wait_status);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  prctl(PR_SET_DUMPABLE, 0);
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  sigaction(signal, &by_default, nullptr);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  kill(getpid(), signal);
  _exit(128 + signal);
}

}  // namespace contextune::cli
