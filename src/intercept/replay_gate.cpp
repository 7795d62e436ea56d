#include "intercept/replay_gate.hpp"

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
  }
  opened_.notify_all();
}

void ReplayGate::wait() noexcept {
  std::unique_lock lock(mutex_);
  opened_.wait(lock, [this] {
    const std::uint64_t by = closed_by_.load();
    return by == 0 || by == this_thread_number();
  });
}

}  // namespace contextune::intercept
