#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace contextune::gpu {

/// A log of launches, with the thread and time of each: finds the launch that a CUPTI record of a
/// driver or runtime call is about. Times are CUPTI's.
///
/// CUPTI numbers a launch through the CUDA runtime by the runtime's call, which begins before we
/// see the launch and ends after it. CUPTI has no record of the driver's call within it, and an
/// external correlation id that is pushed meanwhile comes too late (CUDA 13.0). So a call and a
/// launch belong together when they are on one thread and one lies within the other.
///
/// Threads: `add` from any thread, lock-free; the rest serialised by the caller. Not to be
/// destroyed while a thread is in `add`.
class LaunchLog {
 public:
  /// Launches of one thread that are kept until find_tag looks for one of them.
  static constexpr std::size_t capacity = 4096;

  struct Launch {
    std::uint64_t tag = 0;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };

  LaunchLog();
  ~LaunchLog();
  LaunchLog(const LaunchLog&) = delete;
  LaunchLog& operator=(const LaunchLog&) = delete;

  /// A launch of this thread. Allocates once a thread. False: not noted, the log is full or there
  /// is no memory.
  [[nodiscard]] bool add(const Launch& launch) noexcept;

  /// @param thread as in CUPTI's record: the low bits of pthread_self, or the kernel's number
  [[nodiscard]] std::optional<std::uint64_t> find_tag(std::uint32_t thread, std::uint64_t start,
                                                      std::uint64_t end);

 private:
  struct Thread;
  [[nodiscard]] Thread* this_thread() noexcept;
  static void pull(Thread& thread);

  const std::uint64_t id_;
  std::atomic<Thread*> threads_{nullptr};
};

}  // namespace contextune::gpu
