#pragma once

#include <vector>

#include "intercept/program/arguments.hpp"
#include "intercept/program/kernel_table.hpp"
#include "intercept/site/knob_provider.hpp"

namespace contextune::intercept {

/// Holds what a KernelLaunch refers to. Not to be moved.
class LaunchContext {
 public:
  LaunchContext(const Launch& launch, const KnownKernel& kernel)
      : arguments_(arguments_of(launch, kernel.identity.parameters)),
        at_{launch, kernel.identity, *kernel.facts, {}} {
    LaunchView& view = at_.view;
    view.kernel = kernel.identity.name;
    view.grid = launch.grid;
    view.block = launch.block;
    view.cluster = launch.cluster();
    view.shared_bytes = launch.shared_bytes;
    view.arguments = arguments_.data();
    view.layouts = kernel.identity.parameters.data();
    view.num_arguments = arguments_.size();
    view.parameters = kernel.parameters;
  }
  LaunchContext(const LaunchContext&) = delete;
  LaunchContext& operator=(const LaunchContext&) = delete;

  [[nodiscard]] const KernelLaunch& get() const noexcept { return at_; }

 private:
  std::vector<const void*> arguments_;
  KernelLaunch at_;
};

}  // namespace contextune::intercept
