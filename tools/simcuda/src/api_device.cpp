#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "contexts.hpp"

using namespace simcuda;

namespace {

int attribute_value(const DeviceProfile& profile, CUdevice_attribute attribute, int index) {
  const auto bytes = [](std::size_t value) { return static_cast<int>(value); };
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
      return static_cast<int>(profile.max_threads_per_block);
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
      return 0x7FFFFFFF;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      return 65535;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      return bytes(profile.shared_per_block_bytes);
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
      return 65536;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      return static_cast<int>(profile.warp_size);
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
      return 0x7FFFFFFF;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
      return static_cast<int>(profile.registers_per_sm);
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      return static_cast<int>(profile.sm_clock / 1e3);
    case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
      return 512;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return static_cast<int>(profile.num_sms);
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
      return index + 1;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      return 3201000;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      return 6144;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      return bytes(profile.l2_bytes);
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      return static_cast<int>(profile.max_threads_per_sm);
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
      return 3;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return static_cast<int>(profile.compute_capability / 10);
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return static_cast<int>(profile.compute_capability % 10);
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      return bytes(profile.shared_per_sm_bytes);
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      return bytes(profile.shared_per_block_optin_bytes);
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
      return static_cast<int>(profile.max_blocks_per_sm);
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
      return bytes(profile.shared_reserved_bytes);
    case CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE:
      return bytes(profile.l2_bytes * 5 / 8);
    case CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE:
      return 128 << 20;
    case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO:
      return 2;
    case CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT:
      return 4;
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
      return 0;
    case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_ECC_ENABLED:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
      return 1;
    default:
      return 0;  // what is not simulated is not supported
  }
}

void fill_uuid(CUuuid& uuid, int index) {
  const char text[16] = {'s', 'i', 'm', 'c', 'u', 'd', 'a'};
  std::memcpy(uuid.bytes, text, sizeof uuid.bytes);
  uuid.bytes[15] = static_cast<char>(index);
}

}  // namespace

SIMCUDA_ENTRY(cuDeviceGet, (CUdevice * device, int ordinal), {
  require(device != nullptr);
  (void)driver().device(ordinal);
  *device = ordinal;
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuDeviceGetCount, (int* count), {
  require(count != nullptr);
  *count = static_cast<int>(driver().devices.size());
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuDeviceGetName, (char* name, int len, CUdevice dev), {
  require(name != nullptr && len > 0);
  std::snprintf(name, static_cast<std::size_t>(len), "%s",
                driver().device(dev).profile.name.c_str());
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuDeviceGetUuid, (CUuuid * uuid, CUdevice dev), {
  require(uuid != nullptr);
  (void)driver().device(dev);
  fill_uuid(*uuid, dev);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice dev), {
  require(uuid != nullptr);
  (void)driver().device(dev);
  fill_uuid(*uuid, dev);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuDeviceTotalMem_v2, (size_t * bytes, CUdevice dev), {
  require(bytes != nullptr);
  *bytes = driver().device(dev).profile.memory_bytes;
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuDeviceGetAttribute, (int* pi, CUdevice_attribute attrib, CUdevice dev), {
  require(pi != nullptr && attrib > 0 && attrib < CU_DEVICE_ATTRIBUTE_MAX);
  *pi = attribute_value(driver().device(dev).profile, attrib, dev);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuDeviceComputeCapability, (int* major, int* minor, CUdevice dev), {
  require(major != nullptr && minor != nullptr);
  const unsigned capability = driver().device(dev).profile.compute_capability;
  *major = static_cast<int>(capability / 10);
  *minor = static_cast<int>(capability % 10);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuDeviceGetProperties, (CUdevprop * prop, CUdevice dev), {
  require(prop != nullptr);
  const DeviceProfile& profile = driver().device(dev).profile;
  *prop = {};
  prop->maxThreadsPerBlock = static_cast<int>(profile.max_threads_per_block);
  const int block[] = {1024, 1024, 64};
  const int grid[] = {0x7FFFFFFF, 65535, 65535};
  std::copy(std::begin(block), std::end(block), prop->maxThreadsDim);
  std::copy(std::begin(grid), std::end(grid), prop->maxGridSize);
  prop->sharedMemPerBlock = static_cast<int>(profile.shared_per_block_bytes);
  prop->totalConstantMemory = 65536;
  prop->SIMDWidth = static_cast<int>(profile.warp_size);
  prop->memPitch = 0x7FFFFFFF;
  prop->regsPerBlock = static_cast<int>(profile.registers_per_sm);
  prop->clockRate = static_cast<int>(profile.sm_clock / 1e3);
  prop->textureAlign = 512;
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuDeviceGetPCIBusId, (char* pciBusId, int len, CUdevice dev), {
  require(pciBusId != nullptr && len > 0);
  (void)driver().device(dev);
  std::snprintf(pciBusId, static_cast<std::size_t>(len), "0000:%02X:00.0", dev + 1);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuDeviceGetByPCIBusId, (CUdevice * dev, const char* pciBusId), {
  require(dev != nullptr && pciBusId != nullptr);
  unsigned bus = 0;
  require(std::sscanf(pciBusId, "%*x:%x:", &bus) == 1 || std::sscanf(pciBusId, "%x:", &bus) == 1);
  (void)driver().device(static_cast<int>(bus) - 1);
  *dev = static_cast<int>(bus) - 1;
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuDeviceCanAccessPeer, (int* canAccessPeer, CUdevice dev, CUdevice peerDev), {
  require(canAccessPeer != nullptr);
  (void)driver().device(dev);
  (void)driver().device(peerDev);
  *canAccessPeer = dev == peerDev ? 0 : 1;
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuDeviceGetP2PAttribute,
              (int* value, CUdevice_P2PAttribute attrib, CUdevice srcDevice, CUdevice dstDevice), {
                require(value != nullptr && srcDevice != dstDevice);
                (void)driver().device(srcDevice);
                (void)driver().device(dstDevice);
                *value = attrib == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED ? 1 : 0;
                return CUDA_SUCCESS;
              })
