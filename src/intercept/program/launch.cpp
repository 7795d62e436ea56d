#include "intercept/program/launch.hpp"

#include "intercept/host/hash.hpp"

namespace contextune::intercept {
namespace {

// Named in cuda.h from CUDA 12.8 on; older headers build too.
constexpr unsigned preferred_cluster_dimension = 11;
constexpr unsigned tensor_memory_leak = 721;

}  // namespace

Launch::Launch(const contextune_launch& call) noexcept
    : fn(call.fn),
      function(call.function),
      grid{call.grid[0], call.grid[1], call.grid[2]},
      block{call.block[0], call.block[1], call.block[2]},
      shared_bytes(call.shared_bytes),
      given_stream(call.stream),
      kernel_params(call.kernel_params),
      extra(call.extra) {
  switch (call.fn) {
    case contextune_fn_cuLaunchKernelEx_ptsz:
      per_thread_streams = true;
      [[fallthrough]];
    case contextune_fn_cuLaunchKernelEx:
      extended = true;
      break;
    case contextune_fn_cuLaunchCooperativeKernel_ptsz:
      per_thread_streams = true;
      [[fallthrough]];
    case contextune_fn_cuLaunchCooperativeKernel:
      cooperative = true;
      break;
    case contextune_fn_cuLaunchKernel_ptsz:
      per_thread_streams = true;
      break;
    default:
      break;
  }
  if (extended && call.config != nullptr) {
    const CUlaunchConfig& config = *call.config;
    grid = {config.gridDimX, config.gridDimY, config.gridDimZ};
    block = {config.blockDimX, config.blockDimY, config.blockDimZ};
    shared_bytes = config.sharedMemBytes;
    given_stream = config.hStream;
    attributes = config.attrs;
    num_attributes = config.attrs == nullptr ? 0 : config.numAttrs;
    if (const auto* attr = attribute(CU_LAUNCH_ATTRIBUTE_COOPERATIVE)) {
      cooperative = attr->value.cooperative != 0;
    }
  }
  stream = given_stream;
  if (stream == nullptr) stream = per_thread_streams ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

const CUlaunchAttribute* Launch::attribute(CUlaunchAttributeID id) const noexcept {
  for (std::uint32_t i = 0; i < num_attributes; ++i) {
    if (attributes[i].id == id) return &attributes[i];
  }
  return nullptr;
}

Dim3 Launch::cluster() const noexcept {
  const auto* attr = attribute(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  if (attr == nullptr) return {0, 0, 0};
  return {attr->value.clusterDim.x, attr->value.clusterDim.y, attr->value.clusterDim.z};
}

std::uint64_t Launch::attributes_hash() const noexcept {
  std::uint64_t hash = num_attributes;
  for (std::uint32_t i = 0; i < num_attributes; ++i) {
    const CUlaunchAttribute& attr = attributes[i];
    hash = mix(hash, static_cast<std::uint64_t>(attr.id));
    // Only the presence of the other attributes counts: their values are addresses and events.
    switch (static_cast<unsigned>(attr.id)) {
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      case preferred_cluster_dimension:
        hash = mix(hash, (std::uint64_t{attr.value.clusterDim.x} << 42U) ^
                             (std::uint64_t{attr.value.clusterDim.y} << 21U) ^
                             attr.value.clusterDim.z);
        break;
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        hash = mix(hash, static_cast<std::uint32_t>(attr.value.cooperative));
        break;
      default:
        break;
    }
  }
  return hash;
}

bool Launch::has_fixed_shape() const noexcept {
  const auto* updatable = attribute(CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE);
  return updatable != nullptr && updatable->value.deviceUpdatableKernelNode.deviceUpdatable != 0;
}

bool is_launch_config_error(CUresult result) noexcept {
  switch (result) {
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_OUT_OF_MEMORY:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_INVALID_HANDLE:
    case CUDA_ERROR_NOT_FOUND:
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
    case CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING:
    case CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
    case CUDA_ERROR_NOT_PERMITTED:
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_INVALID_CLUSTER_SIZE:
    case CUDA_ERROR_FUNCTION_NOT_LOADED:
      return true;
    default:
      return false;
  }
}

bool is_sticky_error(CUresult result) noexcept {
  switch (static_cast<unsigned>(result)) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case tensor_memory_leak:
    case CUDA_ERROR_UNKNOWN:
      return true;
    default:
      return false;
  }
}

}  // namespace contextune::intercept
