#include <algorithm>
#include <cstring>

#include "launch.hpp"
#include "modules.hpp"

namespace simcuda {

namespace {

std::size_t volume(const std::array<unsigned, 3>& size) {
  return std::size_t{size[0]} * size[1] * size[2];
}

void check_dimensions(const Launch& launch, const DeviceProfile& profile) {
  const auto& [grid_x, grid_y, grid_z] = launch.grid;
  require(grid_x >= 1 && grid_y >= 1 && grid_z >= 1);
  require(grid_x <= 0x7FFFFFFFU && grid_y <= 65535 && grid_z <= 65535);
  const auto& [block_x, block_y, block_z] = launch.block;
  require(block_x >= 1 && block_y >= 1 && block_z >= 1);
  require(block_x <= 1024 && block_y <= 1024 && block_z <= 64);
  require(volume(launch.block) <= profile.max_threads_per_block);
  require(volume(launch.block) <= launch.code->max_threads_per_block,
          CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
}

void check_cluster(const Launch& launch, const KernelAttributes& attributes,
                   const DeviceProfile& profile) {
  const std::size_t blocks = volume(launch.cluster);
  require(blocks >= 1, CUDA_ERROR_INVALID_VALUE);
  if (blocks == 1) return;
  const unsigned limit = attributes.non_portable_cluster != 0
                             ? profile.max_cluster_blocks_non_portable
                             : profile.max_cluster_blocks;
  require(blocks <= limit, CUDA_ERROR_INVALID_CLUSTER_SIZE);
  for (std::size_t i = 0; i < 3; ++i)
    require(launch.grid[i] % launch.cluster[i] == 0, CUDA_ERROR_INVALID_VALUE);
}

void check_resources(const Launch& launch, const KernelAttributes& attributes,
                     const DeviceProfile& profile) {
  require(launch.dynamic_shared_bytes <=
          static_cast<unsigned>(std::max(0, attributes.max_dynamic_shared_bytes)));
  const BlockDemand demand{
      static_cast<unsigned>(volume(launch.block)), launch.code->registers,
      std::size_t{launch.code->source->static_shared_bytes} + launch.dynamic_shared_bytes};
  const std::size_t shared = shared_configuration(profile, demand, launch.carveout_percent);
  const unsigned resident = blocks_per_sm(profile, demand, shared);
  require(resident > 0, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  if (launch.cooperative)
    require(volume(launch.grid) <= std::size_t{resident} * profile.num_sms,
            CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
}

void take_attribute(Launch& launch, const CUlaunchAttribute& attribute) {
  const CUlaunchAttributeValue& value = attribute.value;
  switch (attribute.id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      launch.cooperative = value.cooperative != 0;
      return;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      launch.cluster = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
      return;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      launch.carveout_percent = static_cast<int>(value.sharedMemCarveout);
      require(launch.carveout_percent >= -1 && launch.carveout_percent <= 100);
      return;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      launch.programmatic = value.programmaticStreamSerializationAllowed != 0;
      return;
    // Hints that change nothing here.
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
      return;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
      throw Failure{CUDA_ERROR_NOT_SUPPORTED};
    default:
      throw Failure{CUDA_ERROR_INVALID_VALUE};
  }
}

void point_into(Launch& launch, std::byte* packed) {
  launch.arguments.clear();
  for (const std::size_t offset : launch.code->offsets) launch.arguments.push_back(packed + offset);
}

void take_arguments(Launch& launch, const LaunchArguments& arguments) {
  const std::size_t count = launch.code->offsets.size();
  require(arguments.parameters == nullptr || arguments.extra == nullptr);
  if (arguments.extra != nullptr) {
    std::byte* packed = nullptr;
    std::size_t bytes = 0;
    for (void** at = arguments.extra; *at != CU_LAUNCH_PARAM_END; at += 2) {
      if (*at == CU_LAUNCH_PARAM_BUFFER_POINTER)
        packed = static_cast<std::byte*>(at[1]);
      else if (*at == CU_LAUNCH_PARAM_BUFFER_SIZE)
        bytes = *static_cast<std::size_t*>(at[1]);
      else
        throw Failure{CUDA_ERROR_INVALID_VALUE};
    }
    require(count == 0 || (packed != nullptr && bytes >= launch.code->parameter_bytes));
    point_into(launch, packed);
    return;
  }
  require(count == 0 || arguments.parameters != nullptr);
  launch.arguments.assign(arguments.parameters, arguments.parameters + count);
}

}  // namespace

OwnedLaunch::OwnedLaunch(const Launch& from) : launch(from), packed(from.code->parameter_bytes) {
  for (std::size_t i = 0; i < from.arguments.size(); ++i)
    std::memcpy(packed.data() + from.code->offsets[i], from.arguments[i],
                from.code->source->parameters[i].bytes);
  point_into(launch, packed.data());
}

OwnedLaunch& OwnedLaunch::operator=(const OwnedLaunch& other) {
  if (this == &other) return *this;
  launch = other.launch;
  packed = other.packed;
  if (launch.code != nullptr) point_into(launch, packed.data());
  return *this;
}

KernelAttributes initial_attributes(const KernelCode& code, const DeviceProfile& profile) {
  KernelAttributes attributes;
  attributes.max_dynamic_shared_bytes = static_cast<int>(profile.shared_per_block_bytes) -
                                        static_cast<int>(code.source->static_shared_bytes);
  return attributes;
}

KernelAttributes& attributes_of(Kernel& kernel, int device) {
  const auto found = kernel.attributes.find(device);
  if (found != kernel.attributes.end()) return found->second;
  return kernel.attributes
      .emplace(device, initial_attributes(*kernel.code, driver().device(device).profile))
      .first->second;
}

KernelAttributes& attributes_of(Function& function) {
  const Module& module = *function.module;
  if (module.library == nullptr) return function.attributes;
  for (Kernel* const kernel : module.library->kernels)
    if (kernel->code == function.code) return attributes_of(*kernel, module.context->device);
  return function.attributes;
}

Callee callee_of(CUfunction handle, int device) {
  const Handles& handles = driver().handles;
  if (auto* const function = handles.find<Function>(handle))
    return {function->code, &attributes_of(*function), function};
  auto& kernel = handles.get<Kernel>(handle);
  return {kernel.code, &attributes_of(kernel, device), nullptr};
}

Launch check_launch(Context& context, CUfunction function, const LaunchArguments& arguments,
                    const CUlaunchAttribute* attributes, unsigned attribute_count) {
  require(function != nullptr, CUDA_ERROR_INVALID_HANDLE);
  const Callee callee = callee_of(function, context.device);
  const DeviceProfile& profile = driver().device(context.device).profile;
  Launch launch;
  launch.code = callee.code;
  launch.handle = function;
  launch.module = callee.function != nullptr
                      ? callee.function->module
                      : &module_of(*driver().handles.get<Kernel>(function).library, context);
  launch.grid = arguments.grid;
  launch.block = arguments.block;
  launch.dynamic_shared_bytes = arguments.dynamic_shared_bytes;
  launch.carveout_percent = callee.attributes->carveout_percent;
  if (callee.attributes->cluster[0] > 0) launch.cluster = callee.attributes->cluster;
  require(attribute_count == 0 || attributes != nullptr);
  for (unsigned i = 0; i < attribute_count; ++i) take_attribute(launch, attributes[i]);
  check_dimensions(launch, profile);
  check_cluster(launch, *callee.attributes, profile);
  check_resources(launch, *callee.attributes, profile);
  take_arguments(launch, arguments);
  return launch;
}

}  // namespace simcuda
