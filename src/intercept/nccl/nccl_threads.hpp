#pragma once

#include <sys/types.h>

#include <mutex>
#include <vector>

#include "preload/contextune_abi.h"

namespace contextune::intercept {

/// The threads that NCCL starts for itself while it makes communicators. They serve its calls, and
/// between those they wait and stay out of the driver. Any thread may call.
class NcclThreads {
 public:
  NcclThreads() = default;
  NcclThreads(const NcclThreads&) = delete;
  NcclThreads& operator=(const NcclThreads&) = delete;

  /// Around each call of the program to NCCL.
  void before(const contextune_nccl_call& call) noexcept;
  void after(const contextune_nccl_call& call) noexcept;

  /// Sorted. Some may have ended.
  [[nodiscard]] std::vector<pid_t> ids() const;

 private:
  mutable std::mutex mutex_;
  int making_ = 0;             ///< calls and groups that make communicators, under way
  std::vector<pid_t> before_;  ///< threads before the first of those
  std::vector<pid_t> ids_;
};

}  // namespace contextune::intercept
