#include "intercept/site/safe_attributes.hpp"

#include <algorithm>

#include "gpu/image/launch_limits.hpp"

namespace contextune::intercept {
namespace {

// The bytes that the hardware adds to each block's shared memory (compute capability 8.0 and
// later).
constexpr std::size_t reserved_bytes = 1024;

gpu::LaunchSize size_of(const Launch& launch) {
  return {launch.grid, launch.block, launch.shared_bytes};
}

}  // namespace

std::vector<Config> SafeAttributes::configs(const KernelLaunch& launch) {
  std::vector<Config> configs;
  if (launch.launch.has_fixed_shape()) return configs;
  const DeviceFacts device = gpu::facts_on(driver_, launch.device, launch.launch.stream);
  const KernelLaunch at{launch.launch, launch.kernel, device, launch.view};
  add_carveouts(at, configs);
  add_occupancies(at, configs);
  add_scheduling(at, configs);
  return configs;
}

void SafeAttributes::add_carveouts(const KernelLaunch& at, std::vector<Config>& configs) const {
  const Launch& launch = at.launch;
  if (launch.attribute(CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) != nullptr ||
      program_.has_set(launch.function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)) {
    return;
  }
  const std::size_t block = at.kernel.static_shared_bytes + launch.shared_bytes;
  const auto sms = static_cast<std::uint64_t>(std::max(at.device.num_sms, 1));
  const std::uint64_t needed = (size_of(launch).blocks() + sms - 1) / sms;
  const bool together =
      launch.cooperative || gpu::fits_in_one_wave(driver_, at.device, at.kernel, size_of(launch));
  for (const int percent : gpu::carveout_percentages(at.device, at.kernel, launch.shared_bytes)) {
    if (percent != 0 && percent != 50 && percent != 100) continue;
    const std::size_t held =
        at.device.max_shared_bytes_per_sm * static_cast<std::size_t>(percent) / 100;
    // Blocks that were resident together may wait for each other: they must stay so.
    if (block != 0 && together && held < needed * (block + reserved_bytes)) continue;
    configs.push_back(Config{{"carveout", std::int64_t{percent}}});
  }
}

void SafeAttributes::add_occupancies(const KernelLaunch& at, std::vector<Config>& configs) const {
  const Launch& launch = at.launch;
  const int per_sm = gpu::blocks_per_sm(driver_, at.kernel, size_of(launch));
  const std::size_t most = gpu::max_dynamic_shared_bytes(at.device, at.kernel);
  for (const int divisor : {2, 4}) {
    const int target = per_sm / divisor;
    if (target < 1) return;
    const std::size_t share = at.device.max_shared_bytes_per_sm / static_cast<std::size_t>(target);
    if (share <= reserved_bytes + at.kernel.static_shared_bytes) return;
    constexpr std::size_t granule = 128;
    const std::size_t bytes =
        (share - reserved_bytes - at.kernel.static_shared_bytes) / granule * granule;
    if (bytes <= launch.shared_bytes || bytes > most) continue;
    gpu::LaunchSize changed = size_of(launch);
    changed.shared_bytes = bytes;
    gpu::KernelIdentity kernel = at.kernel;
    if (!gpu::allow_dynamic_shared(driver_, kernel, bytes)) continue;
    if (!gpu::keeps_co_residency(driver_, at.device, kernel, size_of(launch), changed,
                                 launch.cooperative)) {
      continue;
    }
    configs.push_back(Config{{"shared_bytes", static_cast<std::int64_t>(bytes)}});
  }
}

void SafeAttributes::add_scheduling(const KernelLaunch& at, std::vector<Config>& configs) const {
  const Launch& launch = at.launch;
  if (gpu::has_clusters(at.kernel, launch.cluster()) &&
      launch.attribute(CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE) == nullptr) {
    for (const auto policy :
         {CU_CLUSTER_SCHEDULING_POLICY_SPREAD, CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING}) {
      configs.push_back(Config{{"cluster_scheduling", static_cast<std::int64_t>(policy)}});
    }
  }
  const gpu::PriorityRange range = gpu::priority_range(driver_);
  if (range.greatest < range.least && launch.attribute(CU_LAUNCH_ATTRIBUTE_PRIORITY) == nullptr &&
      !launch.cooperative) {
    configs.push_back(Config{{"priority", std::int64_t{range.greatest}}});
  }
}

VariantSpec SafeAttributes::apply(const Config& config, const KernelLaunch&, LaunchReads&) {
  VariantSpec spec;
  for (const auto& [name, value] : config.entries()) {
    const auto number = std::get<std::int64_t>(value);
    if (name == "shared_bytes") {
      spec.change.shared_bytes = static_cast<std::uint32_t>(number);
    } else if (name == "carveout") {
      spec.carveout = static_cast<int>(number);
    } else if (name == "cluster_scheduling") {
      spec.cluster_scheduling = static_cast<int>(number);
    } else if (name == "priority") {
      spec.priority = static_cast<int>(number);
    }
  }
  return spec;
}

}  // namespace contextune::intercept
