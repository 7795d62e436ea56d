#include "gpu/image/launch_limits.hpp"

#include <algorithm>

#include "gpu/driver/device_facts.hpp"
#include "gpu/driver/launch_shape.hpp"

namespace contextune::gpu {
namespace {

/// 0: all of them, or the driver cannot tell.
unsigned num_sms_on(const Driver& driver, CUstream stream) noexcept {
  const bool is_default =
      stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
  CUdevResource resource{};
  CUgreenCtx green = nullptr;
  if (!is_default && driver.cuStreamGetGreenCtx != nullptr &&
      driver.cuGreenCtxGetDevResource != nullptr &&
      driver.cuStreamGetGreenCtx(stream, &green) == CUDA_SUCCESS && green != nullptr &&
      driver.cuGreenCtxGetDevResource(green, &resource, CU_DEV_RESOURCE_TYPE_SM) == CUDA_SUCCESS) {
    return resource.sm.smCount;
  }
  const CUcontext context = context_of(driver, stream);
  const CurrentContext current(driver, context);
  CUexecAffinityParam affinity{};
  if (driver.cuCtxGetExecAffinity != nullptr &&
      driver.cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT) == CUDA_SUCCESS &&
      affinity.param.smCount.val != 0) {
    return affinity.param.smCount.val;
  }
  if (driver.cuCtxGetDevResource == nullptr || context == nullptr ||
      driver.cuCtxGetDevResource(context, &resource, CU_DEV_RESOURCE_TYPE_SM) != CUDA_SUCCESS) {
    return 0;
  }
  return resource.sm.smCount;
}

}  // namespace

DeviceFacts facts_on(const Driver& driver, const DeviceFacts& device, CUstream stream) {
  DeviceFacts facts = device;
  const unsigned num_sms = num_sms_on(driver, stream);
  if (num_sms != 0 && num_sms < static_cast<unsigned>(std::max(device.num_sms, 0)))
    facts.num_sms = static_cast<int>(num_sms);
  return facts;
}

int blocks_per_sm(const Driver& driver, const KernelIdentity& kernel,
                  const LaunchSize& launch) noexcept {
  int blocks = 0;
  const auto threads = static_cast<int>(std::min<std::uint64_t>(launch.threads(), 1U << 20));
  if (driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel.function, threads,
                                                         launch.shared_bytes) != CUDA_SUCCESS) {
    return 0;
  }
  return blocks;
}

std::uint64_t resident_blocks(const Driver& driver, const DeviceFacts& device,
                              const KernelIdentity& kernel, const LaunchSize& launch,
                              const std::array<std::uint32_t, 3>& launch_cluster) noexcept {
  const std::uint64_t most =
      static_cast<std::uint64_t>(std::max(blocks_per_sm(driver, kernel, launch), 0)) *
      static_cast<std::uint64_t>(std::max(device.num_sms, 0));
  if (!has_clusters(kernel, launch_cluster)) return most;
  const auto& cluster = launch_cluster[0] != 0 ? launch_cluster : kernel.required_cluster;
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim = {cluster[0], cluster[1], cluster[2]};
  CUlaunchConfig config{};
  set_shape(config, launch.grid, launch.block, static_cast<std::uint32_t>(launch.shared_bytes));
  config.attrs = &attribute;
  config.numAttrs = 1;
  int clusters = 0;
  if (driver.cuOccupancyMaxActiveClusters == nullptr ||
      driver.cuOccupancyMaxActiveClusters(&clusters, kernel.function, &config) != CUDA_SUCCESS) {
    return 0;
  }
  // The driver may have thought of the whole device.
  return std::min(most, static_cast<std::uint64_t>(std::max(clusters, 0)) * cluster[0] *
                            cluster[1] * cluster[2]);
}

bool fits_in_one_wave(const Driver& driver, const DeviceFacts& device, const KernelIdentity& kernel,
                      const LaunchSize& launch) noexcept {
  const int per_sm = blocks_per_sm(driver, kernel, launch);
  return launch.blocks() <= static_cast<std::uint64_t>(per_sm) *
                                static_cast<std::uint64_t>(std::max(device.num_sms, 0));
}

bool keeps_co_residency(const Driver& driver, const DeviceFacts& device,
                        const KernelIdentity& kernel, const LaunchSize& written,
                        const LaunchSize& changed, bool cooperative) noexcept {
  if (!cooperative && !fits_in_one_wave(driver, device, kernel, written)) return true;
  return fits_in_one_wave(driver, device, kernel, changed);
}

std::size_t max_dynamic_shared_bytes(const DeviceFacts& device,
                                     const KernelIdentity& kernel) noexcept {
  return device.max_shared_bytes > kernel.static_shared_bytes
             ? device.max_shared_bytes - kernel.static_shared_bytes
             : 0;
}

bool allow_dynamic_shared(const Driver& driver, KernelIdentity& kernel,
                          std::size_t bytes) noexcept {
  if (bytes <= kernel.max_dynamic_shared_bytes) return true;
  const auto value = static_cast<int>(bytes);
  constexpr auto which = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  CUresult result = CUDA_ERROR_NOT_SUPPORTED;
  if (kernel.kind == HandleKind::Function) {
    result = driver.cuFuncSetAttribute(kernel.handle, which, value);
  } else if (driver.cuKernelSetAttribute != nullptr) {
    const auto device = current_device(driver);
    if (!device) return false;
    result = driver.cuKernelSetAttribute(which, value, reinterpret_cast<CUkernel>(kernel.handle),
                                         *device);
  }
  if (result != CUDA_SUCCESS) return false;
  kernel.max_dynamic_shared_bytes = bytes;
  return true;
}

std::vector<int> carveout_percentages(const DeviceFacts& device, const KernelIdentity& kernel,
                                      std::size_t dynamic_shared_bytes) {
  std::vector<int> percentages;
  if (device.max_shared_bytes_per_sm == 0) return percentages;
  const std::size_t block = kernel.static_shared_bytes + dynamic_shared_bytes;
  for (const int percent : {0, 25, 50, 75, 100}) {
    const std::size_t held =
        device.max_shared_bytes_per_sm * static_cast<std::size_t>(percent) / 100;
    // A carve-out is a hint: the driver raises what holds no block, so smaller ones are all the
    // same.
    if (block == 0 || held >= block || percent == 100) percentages.push_back(percent);
  }
  return percentages;
}

PriorityRange priority_range(const Driver& driver) noexcept {
  PriorityRange range;
  if (driver.cuCtxGetStreamPriorityRange == nullptr ||
      driver.cuCtxGetStreamPriorityRange(&range.least, &range.greatest) != CUDA_SUCCESS) {
    return PriorityRange{};
  }
  return range;
}

bool has_clusters(const KernelIdentity& kernel,
                  const std::array<std::uint32_t, 3>& launch_cluster) noexcept {
  return launch_cluster[0] != 0 || kernel.required_cluster[0] != 0 ||
         kernel.cluster_size_must_be_set;
}

}  // namespace contextune::gpu
