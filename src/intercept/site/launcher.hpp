#pragma once

#include "intercept/program/launch.hpp"
#include "intercept/program/variant.hpp"

namespace contextune::intercept {

/// Makes launches with the driver's own entry points. Nothing throws; any thread.
class Launcher {
 public:
  explicit Launcher(const contextune_frontend* frontend);

  /// Exactly as the program asked for.
  [[nodiscard]] CUresult as_written(const contextune_launch& call) const noexcept;

  /// As the variant says. Everything else that the program asked for stays: stream, arguments, its
  /// own attributes, cooperative or not. Uses cuLaunchKernelEx where attributes are added.
  [[nodiscard]] CUresult as_variant(const Launch& launch, const Variant& variant) const noexcept;

  /// The driver's cuLaunchKernel, by what a default stream means to the caller.
  [[nodiscard]] decltype(&cuLaunchKernel) kernel(bool per_thread_streams) const noexcept {
    return kernel_[per_thread_streams];
  }
  /// The driver's cuLaunchKernelEx likewise; null: it has none.
  [[nodiscard]] decltype(&cuLaunchKernelEx) kernel_ex(bool per_thread_streams) const noexcept {
    return ex_[per_thread_streams];
  }

 private:
  [[nodiscard]] CUresult plain(const Launch& launch, const Variant& variant) const noexcept;
  [[nodiscard]] CUresult extended(const Launch& launch, const Variant& variant) const noexcept;

  decltype(&cuLaunchKernel) kernel_[2] = {nullptr, nullptr};  ///< second: _ptsz
  decltype(&cuLaunchKernelEx) ex_[2] = {nullptr, nullptr};
  decltype(&cuLaunchCooperativeKernel) cooperative_[2] = {nullptr, nullptr};
};

}  // namespace contextune::intercept
