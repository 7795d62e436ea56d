#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "intercept/memory/allocation.hpp"

namespace contextune::intercept {

/// Counts the changes of the program's memory, and knows whether any was missed. A change that
/// cannot be kept up with makes the record of that memory incomplete for good. Any thread may use
/// it; nothing throws.
class MemoryChanges {
 public:
  /// @param missed the frontend's word of that name; null: there is no frontend
  explicit MemoryChanges(const std::uint32_t* missed) noexcept;

  /// Grows with every change, except those of NCCL's own memory.
  [[nodiscard]] std::uint64_t version() const noexcept {
    return version_.load(std::memory_order_acquire);
  }
  /// Differs after every change of the memory outside of `device`. The device that got memory first
  /// leaves its own allocations out; for any other, this differs after every change.
  [[nodiscard]] std::uint64_t outside_version(int device) const noexcept {
    if (device == first_device_.load(std::memory_order_acquire))
      return outside_version_.load(std::memory_order_acquire) << 1U;
    return version() << 1U | 1U;
  }
  /// The number of the allocation that came last. Takes no lock.
  [[nodiscard]] std::uint64_t last_serial() const noexcept {
    return last_serial_.load(std::memory_order_acquire);
  }
  /// Why there may be memory that is not known, as a sentence; null: all is known.
  [[nodiscard]] const char* incomplete() const noexcept;

  /// Every change that is noted goes through here.
  /// @param mutex held for it
  /// @param body returns whether it changed anything; may throw
  template <typename Body>
  void make(std::mutex& mutex, Body&& body) noexcept {
    try {
      const std::lock_guard lock(mutex);
      if (body()) version_.fetch_add(1, std::memory_order_release);
    } catch (...) {
      give_up("there was no memory to remember the program's allocations in");
    }
  }
  /// An allocation comes: its number.
  [[nodiscard]] std::uint64_t next_serial() noexcept { return ++last_serial_; }
  /// The memory has come or gone.
  void note_outside(const Allocation& allocation) noexcept;
  /// @param why a sentence that lives as long as the process
  void give_up(const char* why) noexcept;

 private:
  std::atomic<std::uint64_t> last_serial_{0};
  std::atomic<std::uint64_t> version_{0};
  std::atomic<int> first_device_{-1};              ///< that the program got memory on; -1: none yet
  std::atomic<std::uint64_t> outside_version_{0};  ///< of what is outside of that one
  std::atomic<const char*> why_{nullptr};
  const std::uint32_t* const missed_;
};

}  // namespace contextune::intercept
