#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/submission/found_region.hpp"
#include "gpu/driver/driver.hpp"
#include "intercept/program/kernel_table.hpp"
#include "intercept/submission/program_steps.hpp"

namespace contextune::intercept {

/// The stretches that the program repeats, for whoever only looks (`discover`). Any thread; nothing
/// throws.
class DiscoveredPeriods {
 public:
  DiscoveredPeriods(const gpu::Driver& driver, KernelTable& kernels)
      : driver_(driver), kernels_(kernels) {}

  void launch(const contextune_launch& call) noexcept;
  void step(StepKind kind, std::uint64_t identity) noexcept;

  /// The stretches, those that took longest first; entries overlap where one repeats inside of
  /// another.
  [[nodiscard]] std::vector<FoundRegion> found();

 private:
  /// Whole entries that were followed from their beginning.
  struct Timed {
    std::uint64_t entries = 0;
    double seconds = 0;
  };
  struct Followed {
    std::unordered_map<std::uint32_t, Timed> periods;  ///< by the finder's name for them
    std::uint32_t period = 0;                          ///< of the open entry; 0: none is open
    double began = 0;
  };

  /// A period as it is listed, by what is the same for it on all threads.
  struct Listed {
    std::uint64_t identity = 0;
    std::uint32_t length = 0;
    double seconds = 0;  ///< on all threads
    FoundRegion region;
  };

  void list(const WatchedThreads::Thread& thread, std::vector<Listed>& all);
  [[nodiscard]] FoundRegion describe(std::span<const std::uint64_t> tokens) const;
  /// @param name of the kernel; empty: none, or known already
  void see(std::uint64_t token, const std::string& name) noexcept;

  const gpu::Driver& driver_;
  KernelTable& kernels_;
  std::mutex mutex_;
  WatchedThreads threads_;
  std::unordered_map<std::uint64_t, Followed> followed_;  ///< by the thread's number
  std::unordered_map<std::uint64_t, std::string> names_;  ///< by the launch's token
  double first_ = 0;
  double last_ = 0;
};

}  // namespace contextune::intercept
