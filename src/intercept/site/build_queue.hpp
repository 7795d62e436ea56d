#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/value/kernel_rule.hpp"
#include "gpu/driver/driver.hpp"
#include "gpu/image/kernel_code.hpp"

namespace contextune::intercept {

/// Kernels from files and sources, loaded and compiled on one thread of ours, which exists while
/// there is something to build and takes no signals. Any thread.
class BuildQueue {
 public:
  struct Result {
    CUfunction function = nullptr;
    std::string error;  ///< why there is none
  };

  /// @param images as KernelCode has it
  explicit BuildQueue(const gpu::Driver& driver, gpu::ModuleVariables* images = nullptr)
      : driver_(driver), code_(driver, images) {}
  BuildQueue(const BuildQueue&) = delete;
  BuildQueue& operator=(const BuildQueue&) = delete;

  /// The function that `change` names in a module or source of its own. Null: it is being made.
  /// Results live as long as the process.
  [[nodiscard]] const Result* find_or_start(const LaunchChange& change, CUcontext context);

  /// Grows with every build that is done.
  [[nodiscard]] std::uint64_t done() const noexcept {
    return done_.load(std::memory_order_acquire);
  }

  /// Waits until nothing is under way. False: not within that many seconds.
  bool wait_idle(double seconds);

  /// Nothing further is started; what is under way goes on.
  void stop() noexcept;

 private:
  struct Job {
    LaunchChange change;
    CUcontext context = nullptr;
  };
  using Name = std::vector<std::string>;

  void start_thread();
  void work() noexcept;
  [[nodiscard]] Result build(const Job& job) noexcept;

  const gpu::Driver& driver_;
  gpu::KernelCode code_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::map<Name, std::unique_ptr<Result>> results_;  ///< null: being made
  std::atomic<std::uint64_t> done_{0};
  bool running_ = false;
  bool building_ = false;
  bool stopped_ = false;
};

}  // namespace contextune::intercept
