#include "intercept/memory/memory_changes.hpp"

namespace contextune::intercept {

MemoryChanges::MemoryChanges(const std::uint32_t* missed) noexcept : missed_(missed) {
  if (missed == nullptr) give_up("without the frontend, the program's allocations are not seen");
}

const char* MemoryChanges::incomplete() const noexcept {
  if (missed_ != nullptr && __atomic_load_n(missed_, __ATOMIC_ACQUIRE) != 0) {
    return "the program used the driver before its allocations could be seen";
  }
  return why_.load(std::memory_order_acquire);
}

void MemoryChanges::give_up(const char* why) noexcept {
  const char* none = nullptr;
  if (why_.compare_exchange_strong(none, why, std::memory_order_acq_rel)) {
    version_.fetch_add(1, std::memory_order_release);
  }
}

void MemoryChanges::note_outside(const Allocation& allocation) noexcept {
  int first = first_device_.load(std::memory_order_relaxed);
  if (first < 0 && allocation.device >= 0) {
    first = allocation.device;
    first_device_.store(first, std::memory_order_release);
  }
  if (allocation.is_outside_of(first)) outside_version_.fetch_add(1, std::memory_order_release);
}

}  // namespace contextune::intercept
