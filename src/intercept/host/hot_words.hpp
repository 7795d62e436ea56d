#pragma once

#include <atomic>
#include <cstdint>

namespace contextune::intercept {

class ProcessRuntime;

/// The words that threads share and a settled launch or collective reads, in one cache line. Behind
/// the driver, which takes the caches for itself, each line costs.
struct alignas(64) HotWords {
  std::atomic<std::uint64_t> settled_version{1};
  std::atomic<ProcessRuntime*> running{nullptr};
  std::atomic<void** (*)()> thread_word{nullptr};  ///< contextune_frontend::thread; null: none
  std::atomic<bool> any_region{false};             ///< open, or `process` is
};
inline constinit HotWords hot_words;

}  // namespace contextune::intercept
