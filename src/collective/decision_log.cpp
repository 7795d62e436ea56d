#include "collective/decision_log.hpp"

#include "collective/lockstep_digest.hpp"

namespace contextune::collective {

std::uint64_t lockstep_hash(std::span<const DecisionReport> reports) noexcept {
  LockstepDigest digest;
  for (const DecisionReport& report : reports) {
    digest.add(report.number);
    digest.add(report.epoch);
    digest.add(report.decision);
  }
  return digest.value();
}

void DecisionLog::push(const DecisionReport& report) noexcept {
  std::uint64_t at = pushed_.load(std::memory_order_relaxed);
  for (;;) {
    Place& place = places_[at % capacity];
    const std::uint64_t free = 2 * (at / capacity);
    const std::uint64_t turn = place.turn.load(std::memory_order_acquire);
    if (turn < free) {  // the owner has not taken the report of the round before
      dropped_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    if (turn > free) {  // another thread was here first
      at = pushed_.load(std::memory_order_relaxed);
      continue;
    }
    if (!pushed_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) continue;
    place.report = report;
    place.turn.store(free + 1, std::memory_order_release);
    return;
  }
}

bool DecisionLog::pop(DecisionReport& report) noexcept {
  Place& place = places_[popped_ % capacity];
  const std::uint64_t free = 2 * (popped_ / capacity);
  if (place.turn.load(std::memory_order_acquire) != free + 1) return false;
  report = place.report;
  place.turn.store(free + 2, std::memory_order_release);
  ++popped_;
  return true;
}

}  // namespace contextune::collective
