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
