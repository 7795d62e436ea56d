#include "cli/run/program.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <ctime>

namespace contextune::cli {
namespace {

// Signals by which the kernel says that this very process has gone wrong.
constexpr std::array<int, 6> own_faults = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};

constexpr std::array interval_timers = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};

// Between looks at processes that were told to end.
constexpr double look_for_end_seconds = 0.1;

std::vector<char*> pointers_of(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size());
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

timespec timespec_of(double seconds) {
  const double whole = std::floor(seconds);
  return {static_cast<time_t>(whole), static_cast<long>((seconds - whole) * 1e9)};
}

}  // namespace

Program::Program(const std::vector<std::string>& command,
                 const std::vector<Environment>& environments) {
  const itimerval none{};
  // Before signals are held: what has run out by now ends this process, as it would the program.
  for (std::size_t i = 0; i < num_timers; ++i)
    setitimer(interval_timers[i], &none, &timers_at_start_[i]);
  sigfillset(&taken_);
  for (const int fault : own_faults) sigdelset(&taken_, fault);
  sigprocmask(SIG_BLOCK, &taken_, &mask_at_start_);
  // Ignored, as some daemons leave it, it would make the program's status vanish.
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &by_default, &child_action_at_start_);
  for (const Environment& environment : environments) {
    start(command, environment);
    if (start_error_ == 0) continue;
    for (const Process& process : processes_) {
      kill(process.pid, SIGKILL);
      waitpid(process.pid, nullptr, 0);
    }
    return;
  }
}

void Program::start(const std::vector<std::string>& command, const Environment& environment) {
  std::array<int, 2> error_pipe{-1, -1};
  if (pipe2(error_pipe.data(), O_CLOEXEC) != 0) {
    start_error_ = errno;
    return;
  }
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) become(command, environment, parent, error_pipe[1]);
  start_error_ = pid < 0 ? errno : 0;
  close(error_pipe[1]);
  int error = 0;
  ssize_t count = -1;
  do {
    count = read(error_pipe[0], &error, sizeof error);
  } while (count < 0 && errno == EINTR);
  close(error_pipe[0]);
  if (count == static_cast<ssize_t>(sizeof error)) {
    start_error_ = error;
    waitpid(pid, nullptr, 0);
  }
  if (start_error_ == 0) processes_.push_back({pid});
}

void Program::become(const std::vector<std::string>& command, const Environment& environment,
                     pid_t parent, int error_pipe) const {
  // SIGKILL cannot be passed on; without this it would leave the program running.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(125);
  if (!processes_.empty()) {  // not the first
    const int null = open("/dev/null", O_RDONLY);
    if (null > STDIN_FILENO) {
      dup2(null, STDIN_FILENO);
      close(null);
    }
  }
  sigaction(SIGCHLD, &child_action_at_start_, nullptr);
  sigprocmask(SIG_SETMASK, &mask_at_start_, nullptr);
  const std::vector<char*> arguments = pointers_of(command);
  const std::vector<char*> variables = pointers_of(environment.entries());
  for (std::size_t i = 0; i < num_timers; ++i)
    setitimer(interval_timers[i], &timers_at_start_[i], nullptr);
  execvpe(arguments[0], arguments.data(), variables.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(error_pipe, &error, sizeof error);
  _exit(127);
}

int Program::wait(const ProgramEvents& events) {
  std::vector<pid_t> pids;
  for (const Process& process : processes_) pids.push_back(process.pid);
  witness_ = std::make_unique<GroupWitness>(pids);
  while (some_run()) {
    const bool ticks = events.period_seconds > 0;
    const timespec period = timespec_of(ticks ? events.period_seconds : look_for_end_seconds);
    siginfo_t info{};
    const int signal = sigtimedwait(&taken_, &info, ticks || kill_at_ ? &period : nullptr);
    if (signal > 0 && signal != SIGCHLD) take_signal(info);
    reap(events);
    if (!followed_ && all_stopped()) stop_too();
    end_those_that_stay();
    if (signal < 0 && errno != EINTR && ticks && some_run()) events.tick();
  }
  witness_.reset();
  return status_;
}

void Program::reap(const ProgramEvents& events) {
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    Process& process = processes_[i];
    while (process.running) {
      int status = 0;
      const pid_t changed = waitpid(process.pid, &status, WNOHANG | WUNTRACED | WCONTINUED);
      if (changed == 0 || (changed < 0 && errno != ECHILD)) break;
      if (changed > 0 && WIFSTOPPED(status)) {
        process.stopped = true;
        followed_ = false;
      } else if (changed > 0 && WIFCONTINUED(status)) {
        process.stopped = false;
        followed_ = false;
      } else {
        process.running = false;
        if (events.ended) events.ended(process.pid, status);
        note_end(i, status, events);
      }
    }
  }
}

void Program::note_end(std::size_t process, int status, const ProgramEvents& events) {
  if (status == 0) return;
  if (status_ == 0) status_ = status;
  if (!some_run()) return;
  if (events.failed) events.failed(process, status);
  if (grace_seconds_ <= 0 || kill_at_) return;
  signal_all(SIGTERM);
  signal_all(SIGCONT);
  kill_at_ = std::chrono::steady_clock::now() +
             std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                 std::chrono::duration<double>(grace_seconds_));
}

void Program::signal_all(int signal) const {
  for (const Process& process : processes_) {
    if (process.running) kill(process.pid, signal);
  }
}

void Program::end_those_that_stay() {
  if (kill_at_ && std::chrono::steady_clock::now() >= *kill_at_) signal_all(SIGKILL);
}

bool Program::some_run() const {
  return std::ranges::any_of(processes_, &Process::running);
}

bool Program::all_stopped() const {
  return some_run() &&
         std::ranges::all_of(processes_, [](const Process& p) { return p.stopped || !p.running; });
}

void Program::take_signal(const siginfo_t& info) {
  const int signal = info.si_signo;
  if (signal == SIGCONT && info.si_code == SI_USER && info.si_pid == witness_->helper()) return;
  const bool to_group = witness_->saw(signal);
  const bool some_in_group = std::ranges::any_of(
      processes_, [](const Process& p) { return p.running && getpgid(p.pid) == getpgrp(); });
  if (to_group && some_in_group && signal < SIGRTMIN) {
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
  const bool from_program =
      std::ranges::any_of(processes_, [&](const Process& p) { return p.pid == info.si_pid; });
  // The terminal sends its signals to the program as well; a report that cannot be written
  // (SIGPIPE, SIGXFSZ) is our own trouble.
  if (!from_process || from_program || info.si_pid == getpid()) return;
  for (const Process& process : processes_) {
    if (!process.running || (to_group && getpgid(process.pid) == getpgrp())) continue;
    if (info.si_code == SI_QUEUE) {
      sigqueue(process.pid, signal, info.si_value);
    } else {
      kill(process.pid, signal);
    }
  }
}

// Stops this process, for the shell to see that the job has stopped, until the shell or a child
// that goes on wakes it. Where no shell could wake it again the kernel lets it run on.
void Program::stop_too() {
  struct sigaction by_default {};
  struct sigaction before {};
  by_default.sa_handler = SIG_DFL;
  sigaction(SIGTSTP, &by_default, &before);
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  witness_->wake_with_children(true);
  raise(SIGTSTP);
  sigprocmask(SIG_UNBLOCK, &stop, nullptr);
  sigprocmask(SIG_BLOCK, &stop, nullptr);
  witness_->wake_with_children(false);
  sigaction(SIGTSTP, &before, nullptr);
  followed_ = true;
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
