#include "intercept/replay_gate.hpp"

#include "intercept/clock.hpp"
#include "intercept/settled_launches.hpp"
#include "intercept/thread_state.hpp"

namespace contextune::intercept {
namespace {

std::uint64_t this_thread_number() noexcept {
  return reinterpret_cast<std::uint64_t>(&this_thread());
}

}  // namespace

void ReplayGate::watch(bool on) noexcept {
  if (frontend_ == nullptr || frontend_->recording == nullptr) return;
  std::atomic_ref<std::uint32_t>(*frontend_->recording).store(on ? 1 : 0);
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

bool ReplayGate::signal_waits() const noexcept {
  sigset_t waiting;
  if (sigpending(&waiting) != 0) return false;
  for (int signal = 1; signal < NSIG; ++signal) {
    if (sigismember(&waiting, signal) == 1 && sigismember(&signals_, signal) == 0) return true;
  }
  return false;
}

double ReplayGate::waited_seconds() const noexcept {
  const double since = waits_since_.load(std::memory_order_relaxed);
  return since == 0 ? 0 : now_seconds() - since;
}

void ReplayGate::wait() noexcept {
  std::unique_lock lock(mutex_);
  if (closed_by_.load() == this_thread_number()) return;
  if (waits_since_.load() == 0) waits_since_.store(now_seconds());
  opened_.wait(lock, [this] { return closed_by_.load() == 0; });
}

}  // namespace contextune::intercept
