#include "intercept/program/replay_gate.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string_view>

#include "intercept/host/clock.hpp"
#include "intercept/nccl/nccl_caller.hpp"
#include "intercept/program/settled_launches.hpp"
#include "intercept/program/thread_state.hpp"

namespace contextune::intercept {
namespace {

/// Each step of a replay has a deadline, and its thread goes on after it or stops the process. A
/// thread that has not opened the gate by then is gone, and memory is not what the program has to
/// see.
constexpr double most_wait_seconds = 1200;

[[noreturn]] void give_up() noexcept {
  constexpr std::string_view text =
      "contextune: a replay did not end, and the program's memory is not put back; the program is "
      "stopped here, since its results would be wrong. Run it with --mode live.\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  std::abort();
}

/// Whether anything comes of a signal when it is let through. A blocked signal waits even where it
/// is ignored.
bool does_something(int signal) noexcept {
  struct sigaction action {};
  if (sigaction(signal, nullptr, &action) != 0) return true;
  const bool by_default_nothing =
      signal == SIGCHLD || signal == SIGURG || signal == SIGWINCH || signal == SIGCONT;
  return action.sa_handler != SIG_IGN && (action.sa_handler != SIG_DFL || !by_default_nothing);
}

}  // namespace

void ReplayGate::watch(bool on) noexcept {
  if (frontend_ == nullptr || frontend_->recording == nullptr) return;
  std::atomic_ref<std::uint32_t>(*frontend_->recording).store(on ? 1 : 0);
}

void ReplayGate::show_copies(bool on) noexcept {
  if (frontend_ == nullptr || frontend_->transfers == nullptr) return;
  std::atomic_ref<std::uint32_t>(*frontend_->transfers).fetch_add(on ? 1U : ~0U);
}

void ReplayGate::show_messages(bool on) noexcept {
  if (frontend_ == nullptr || frontend_->messages == nullptr) return;
  std::atomic_ref<std::uint32_t>(*frontend_->messages).fetch_add(on ? 1U : ~0U);
}

bool ReplayGate::is_in_message() const noexcept {
  return frontend_ != nullptr && frontend_->in_message != nullptr && frontend_->in_message() != 0;
}

bool ReplayGate::any_in_message() const noexcept {
  return frontend_ != nullptr && frontend_->messages_under_way != nullptr &&
         frontend_->messages_under_way() != 0;
}

void ReplayGate::close() noexcept {
  sigset_t others;
  (void)sigfillset(&others);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) {
    (void)sigdelset(&others, own);
  }
  (void)pthread_sigmask(SIG_BLOCK, &others, &signals_);
  closed_by_.store(this_thread_number());
  // No launch goes past us by what its thread remembers.
  settled_changed();
}

void ReplayGate::open() noexcept {
  {
    const std::lock_guard lock(mutex_);
    closed_by_.store(0);
    waits_since_.store(0);
  }
  opened_.notify_all();
  (void)pthread_sigmask(SIG_SETMASK, &signals_, nullptr);
}

bool ReplayGate::others_left(double seconds) noexcept {
  if (frontend_ == nullptr || frontend_->calls_ended == nullptr) return false;
  const bool left = frontend_->calls_ended(static_cast<std::uint64_t>(seconds * 1e9)) != 0;
  // Threads inside remembered facts from before the gate was closed.
  settled_changed();
  return left;
}

bool ReplayGate::signal_waits() const noexcept {
  sigset_t waiting;
  if (sigpending(&waiting) != 0) return false;
  for (int signal = 1; signal < NSIG; ++signal) {
    if (sigismember(&waiting, signal) == 1 && sigismember(&signals_, signal) == 0 &&
        does_something(signal)) {
      return true;
    }
  }
  return false;
}

void ReplayGate::let_fatal_signals_through() const noexcept {
  sigset_t waiting;
  if (sigpending(&waiting) != 0) return;
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU}) {
    struct sigaction action {};
    if (sigismember(&waiting, signal) != 1 || sigismember(&signals_, signal) == 1 ||
        sigaction(signal, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) {
      continue;
    }
    sigset_t one;
    (void)sigemptyset(&one);
    (void)sigaddset(&one, signal);
    (void)pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  }
}

double ReplayGate::waited_seconds() const noexcept {
  const double since = waits_since_.load(std::memory_order_relaxed);
  return since == 0 ? 0 : now_seconds() - since;
}

bool ReplayGate::keeps_out() const noexcept {
  const std::uint64_t by = closed_by_.load(std::memory_order_seq_cst);
  return by != 0 && by != this_thread_number();
}

void ReplayGate::wait() noexcept {
  // NCCL's own threads serve what the replay repeats, and have no memory of the program.
  if (keeps_out() && !is_thread_of_nccl()) wait_until_open();
}

bool ReplayGate::opens_within(double seconds) noexcept {
  if (!keeps_out()) return true;
  std::unique_lock lock(mutex_);
  return opened_.wait_for(lock, std::chrono::duration<double>(seconds),
                          [this] { return is_open(); });
}

void ReplayGate::wait_until_open() noexcept {
  const bool can_leave = frontend_ != nullptr && frontend_->leave_call != nullptr;
  while (!is_open()) {
    const bool left = can_leave && frontend_->leave_call() != 0;
    {
      std::unique_lock lock(mutex_);
      if (!is_open() && waits_since_.load() == 0) waits_since_.store(now_seconds());
      if (!opened_.wait_for(lock, std::chrono::duration<double>(most_wait_seconds),
                            [this] { return is_open(); })) {
        give_up();
      }
    }
    // Inside, and then another look: whoever closes it anew looks in the other order.
    if (left) frontend_->enter_call();
  }
}

}  // namespace contextune::intercept
