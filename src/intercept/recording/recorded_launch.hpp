#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/value/kernel_rule.hpp"
#include "intercept/program/launch.hpp"

namespace contextune::intercept {

/// A launch that can be made again: arguments and attributes are copies. Stays where it was made.
class RecordedLaunch {
 public:
  /// @param parameters of the kernel
  /// @throws Error if the launch does not say where an argument lies
  RecordedLaunch(const contextune_launch& call, std::span<const ArgumentLayout> parameters);
  RecordedLaunch(const RecordedLaunch&) = delete;
  RecordedLaunch& operator=(const RecordedLaunch&) = delete;

  [[nodiscard]] const contextune_launch& call() const noexcept { return call_; }

 private:
  contextune_launch call_;
  CUlaunchConfig config_{};
  std::vector<CUlaunchAttribute> attributes_;
  std::vector<std::byte> bytes_;
  std::vector<void*> pointers_;
  std::size_t packed_bytes_ = 0;
  void* extra_[5] = {};
};

}  // namespace contextune::intercept
