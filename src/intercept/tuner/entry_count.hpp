#pragma once

#include <atomic>
#include <cstdint>

#include "core/search/region_tuning.hpp"

namespace contextune::intercept {

/// Numbers the entries of one search, and counts those that its tuning is not told of as they
/// begin. Written by whoever has the entry, read by any thread.
class EntryCount {
 public:
  /// Names the entry that is about to begin.
  [[nodiscard]] PassId next() noexcept {
    return PassId{number_.fetch_add(1, std::memory_order_relaxed) + 1};
  }
  /// The entry under way, or the last one.
  [[nodiscard]] PassId current() const noexcept {
    return PassId{number_.load(std::memory_order_relaxed)};
  }

  void skip() noexcept {
    skipped_.store(skipped_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  /// Those that were skipped since this was last asked.
  [[nodiscard]] std::uint64_t take_skipped() noexcept { return skipped_.exchange(0); }

  void note_planned() noexcept { any_planned_.store(true, std::memory_order_relaxed); }
  /// Whether the tuning was ever asked what an entry is to run.
  [[nodiscard]] bool any_planned() const noexcept {
    return any_planned_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> number_{0};
  std::atomic<std::uint64_t> skipped_{0};
  std::atomic<bool> any_planned_{false};
};

}  // namespace contextune::intercept
