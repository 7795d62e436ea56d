#pragma once

#include <atomic>
#include <cstdint>

namespace contextune::intercept {

class ProcessRuntime;

/// What a settled launch reads of what threads share, in one cache line: behind the driver, which
/// takes the caches for itself, each line costs.
struct alignas(64) HotWords {
  std::atomic<std::uint64_t> settled_version{1};
  std::atomic<ProcessRuntime*> running{nullptr};
};
inline constinit HotWords hot_words;

}  // namespace contextune::intercept
