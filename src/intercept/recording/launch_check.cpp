#include "intercept/recording/launch_check.hpp"

#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <contextune/error.hpp>

#include "intercept/program/arguments.hpp"

namespace contextune::intercept {

void LaunchCheck::begin(FirstLaunch first_launch) {
  first_launch_ = std::move(first_launch);
  kernels_seen_.clear();
  graphs_seen_.clear();
  no_addresses_.clear();
}

Launch LaunchCheck::launch_of(const contextune_launch& call) const {
  Launch launch(call);
  if (several_devices_) (void)driver_.cuCtxGetCurrent(&launch.context);
  return launch;
}

std::optional<Recording::Obstacle> LaunchCheck::find_obstacle(const Launch& launch) const {
  if (captures_.possible() && captures_.is_capturing(launch.stream))
    return Obstacle{FallbackReason::Capture, {}, false};
  for (std::uint32_t i = 0; i < launch.num_attributes; ++i) {
    const auto id = launch.attributes[i].id;
    if (id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT ||
        id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) {
      return Obstacle{FallbackReason::UnsupportedLaunch, "A launch records an event of its own.",
                      false};
    }
  }
  return std::nullopt;
}

std::optional<Recording::Obstacle> LaunchCheck::find_obstacle(const GraphCall& call) {
  if (graphs_seen_.contains(call.exec)) return std::nullopt;
  const auto graph = graphs_.find(call.exec);
  if (std::string why = graphs_.unreplayable(call.exec); graph == nullptr || !why.empty())
    return Obstacle{FallbackReason::GraphUnreplayable, std::move(why), false};
  std::shared_ptr<const GraphNodes> nodes;
  std::string why_not;
  {
    const std::lock_guard lock(graph->mutex);
    nodes = graph->nodes();
    why_not = graph->why_not();
  }
  if (nodes == nullptr)
    return Obstacle{FallbackReason::GraphUnreplayable, std::move(why_not), false};
  for (const auto* kernels : {&nodes->kernels(), &nodes->inner_kernels()}) {
    for (const GraphKernel& one : *kernels) {
      CUlaunchConfig config{};
      Launch launch = one.launch(config);
      if (several_devices_) launch.context = graph->context();
      std::optional<Obstacle> obstacle;
      const KnownKernel* kernel = meet(launch, obstacle);
      if (kernel != nullptr) obstacle = find_obstacle(launch, *kernel);
      if (obstacle) return obstacle;
    }
  }
  graphs_seen_.insert(call.exec);
  return std::nullopt;
}

const KnownKernel* LaunchCheck::meet(const Launch& launch, std::optional<Obstacle>& obstacle) {
  const KnownKernel* kernel = kernels_.find(launch.function, launch.context);
  if (kernel == nullptr) {
    obstacle = {FallbackReason::UnknownKernel, {}, false};
    return nullptr;
  }
  if (!kernels_seen_.insert(kernel).second) return kernel;
  const std::string& name = kernel->identity.name;
  if (name.starts_with("nccl") && name.find("DevKernel") != std::string::npos) {
    obstacle = {FallbackReason::Collective, {}, false};
    return nullptr;
  }
  obstacle = first_launch_(*kernel);
  return obstacle ? nullptr : kernel;
}

std::optional<Recording::Obstacle> LaunchCheck::find_obstacle(const Launch& launch,
                                                              const KnownKernel& kernel) {
  const auto& layouts = kernel.identity.parameters;
  const auto given = [&](FallbackReason reason, const char* memory) {
    return Obstacle{reason, "Kernel " + kernel.identity.name + " is given " + memory, false};
  };
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    const auto* bytes = static_cast<const std::byte*>(argument_of(launch, i, layouts[i]));
    if (bytes == nullptr) throw Error("An argument of a launch cannot be found.");
    for (std::size_t at = 0; at + sizeof(CUdeviceptr) <= layouts[i].size_bytes;
         at += sizeof(CUdeviceptr)) {
      CUdeviceptr word = 0;
      std::memcpy(&word, bytes + at, sizeof word);
      const auto allocation = memory_.allocations().find(word);
      if (!allocation && is_unseen_memory(word))
        return given(FallbackReason::UnknownMemory, "memory whose allocation was not seen.");
      if (!allocation) continue;
      if (allocation->of_nccl) return given(FallbackReason::UnknownMemory, "memory of NCCL's.");
      if (allocation->kind != AllocationKind::Host) continue;
      return given(FallbackReason::HostMemory, "host memory.");
    }
  }
  return std::nullopt;
}

/// A library opened with RTLD_DEEPBIND may have such memory, for example: its calls to the driver
/// are not seen.
bool LaunchCheck::is_unseen_memory(CUdeviceptr word) {
  constexpr CUdeviceptr lowest = 1U << 16U;  // below it the system maps nothing
  if (word < lowest || !no_addresses_.insert(word).second) return false;
  unsigned type = 0;
  return driver_.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, word) ==
         CUDA_SUCCESS;
}

}  // namespace contextune::intercept
