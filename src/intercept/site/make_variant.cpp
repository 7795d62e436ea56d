#include "intercept/site/make_variant.hpp"

#include "gpu/image/launch_limits.hpp"

namespace contextune::intercept {
namespace {

std::uint64_t volume(const Dim3& extent) {
  return std::uint64_t{extent[0]} * extent[1] * extent[2];
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// Launching it would read arguments that are not there.
bool takes_same_arguments(const gpu::KernelIdentity& a, const gpu::KernelIdentity& b) {
  if (a.parameters.size() != b.parameters.size()) return false;
  for (std::size_t i = 0; i < a.parameters.size(); ++i) {
    if (a.parameters[i].size_bytes != b.parameters[i].size_bytes ||
        a.parameters[i].offset_bytes != b.parameters[i].offset_bytes) {
      return false;
    }
  }
  return true;
}

void add_attributes(Variant& variant, const VariantSpec& spec, const KernelLaunch& launch) {
  const auto add = [&](CUlaunchAttributeID id) -> CUlaunchAttributeValue& {
    CUlaunchAttribute& attribute = variant.attributes.at(variant.num_attributes++);
    attribute.id = id;
    return attribute.value;
  };
  if (spec.change.cluster && *spec.change.cluster != launch.launch.cluster()) {
    auto& value = add(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
    value.clusterDim.x = (*spec.change.cluster)[0];
    value.clusterDim.y = (*spec.change.cluster)[1];
    value.clusterDim.z = (*spec.change.cluster)[2];
  }
  if (spec.carveout) {
    add(CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT).sharedMemCarveout =
        static_cast<unsigned>(*spec.carveout);
  }
  if (spec.priority) add(CU_LAUNCH_ATTRIBUTE_PRIORITY).priority = *spec.priority;
  if (spec.cluster_scheduling) {
    add(CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE)
        .clusterSchedulingPolicyPreference =
        static_cast<CUclusterSchedulingPolicy>(*spec.cluster_scheduling);
  }
}

/// Why blocks that wait for each other might wait for one that has no room. Empty: all have.
std::string lacks_room(const Variant& variant, const VariantSpec& spec, const KernelLaunch& launch,
                       const gpu::KernelIdentity& kernel, const gpu::Driver& driver) {
  const gpu::LaunchSize size{variant.grid, variant.block, variant.shared_bytes};
  const std::uint64_t most =
      gpu::resident_blocks(driver, gpu::facts_on(driver, launch.device, launch.launch.stream),
                           kernel, size, spec.change.cluster.value_or(launch.launch.cluster()));
  if (size.blocks() <= most) return {};
  return std::to_string(size.blocks()) + " blocks, of which the device holds " +
         std::to_string(most) + " at once; the declaration says co_resident";
}

/// Fills in the function and its limits. Empty: it can be launched.
std::string prepare_function(Variant& variant, const VariantSpec& spec, const KernelLaunch& launch,
                             const gpu::Driver& driver) {
  std::string why;
  // Asked for anew: what the program set since the kernel was first seen must not be lowered.
  auto kernel = gpu::identify(driver, variant.function, why);
  if (!kernel) return why;
  if (variant.function != launch.launch.function && !takes_same_arguments(*kernel, launch.kernel)) {
    return kernel->name + " does not take the arguments of " + launch.kernel.name;
  }
  if (volume(variant.grid) == 0 || volume(variant.block) == 0) {
    return "a dimension of the grid or the block is 0";
  }
  if (kernel->max_threads > 0 &&
      volume(variant.block) > static_cast<std::uint64_t>(kernel->max_threads)) {
    return "a block of " + std::to_string(volume(variant.block)) + " threads; " + kernel->name +
           " takes at most " + std::to_string(kernel->max_threads);
  }
  if (!gpu::allow_dynamic_shared(driver, *kernel, variant.shared_bytes)) {
    return std::to_string(variant.shared_bytes) + " bytes of dynamic shared memory; at most " +
           std::to_string(gpu::max_dynamic_shared_bytes(launch.device, *kernel)) + " are possible";
  }
  if (!spec.co_resident) return {};
  why = lacks_room(variant, spec, launch, *kernel, driver);
  variant.too_large = !why.empty();
  return why;
}

Variant unusable(std::string why, bool too_large = false) {
  Variant variant;
  variant.why = std::move(why);
  variant.too_large = too_large;
  return variant;
}

}  // namespace

bool is_as_written(const VariantSpec& spec, const KernelLaunch& launch) {
  const LaunchChange& change = spec.change;
  const Launch& written = launch.launch;
  const bool same_function = change.module.empty() && change.source.empty() &&
                             (change.function.empty() || change.function == launch.kernel.name ||
                              change.function == launch.kernel.symbol);
  const Dim3 cluster = written.cluster();
  return same_function && !spec.carveout && !spec.priority && !spec.cluster_scheduling &&
         change.grid.value_or(written.grid) == written.grid &&
         change.block.value_or(written.block) == written.block &&
         change.shared_bytes.value_or(written.shared_bytes) == written.shared_bytes &&
         change.cluster.value_or(cluster) == cluster;
}

std::optional<Variant> make_variant(const VariantSpec& spec, const KernelLaunch& launch,
                                    const gpu::Driver& driver, BuildQueue& builds) {
  const LaunchChange& change = spec.change;
  Variant variant;
  variant.function = launch.launch.function;
  variant.grid = change.grid.value_or(launch.launch.grid);
  variant.block = change.block.value_or(launch.launch.block);
  variant.shared_bytes = change.shared_bytes.value_or(launch.launch.shared_bytes);
  if (!change.module.empty() || !change.source.empty()) {
    CUcontext context = nullptr;
    (void)driver.cuCtxGetCurrent(&context);
    const BuildQueue::Result* built = builds.find_or_start(change, context);
    if (built == nullptr) return std::nullopt;
    if (built->function == nullptr) return unusable(built->error);
    variant.function = built->function;
  } else if (!change.function.empty()) {
    variant.function = gpu::find_function(driver, launch.kernel, change.function);
    if (variant.function == nullptr) {
      return unusable("there is no kernel " + change.function + " beside " + launch.kernel.name +
                      "; there are: " + joined(gpu::function_names(driver, launch.kernel)));
    }
  }
  const gpu::RelaxedCapture relaxed(driver);
  if (std::string why = prepare_function(variant, spec, launch, driver); !why.empty()) {
    return unusable(std::move(why), variant.too_large);
  }
  add_attributes(variant, spec, launch);
  variant.usable = true;
  return variant;
}

}  // namespace contextune::intercept
