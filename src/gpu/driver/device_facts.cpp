#include "gpu/driver/device_facts.hpp"

#include <array>

namespace contextune::gpu {

DeviceFacts device_facts(const Driver& driver, CUdevice device) noexcept {
  const auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    return driver.cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
  };
  const auto bytes = [&](CUdevice_attribute which) {
    return static_cast<std::size_t>(attribute(which));
  };
  DeviceFacts facts;
  std::array<char, 256> name{};
  if (driver.cuDeviceGetName(name.data(), static_cast<int>(name.size()) - 1, device) ==
      CUDA_SUCCESS) {
    facts.name = name.data();
  }
  facts.num_sms = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  facts.compute_capability = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
                             attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  facts.max_threads_per_block = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  facts.max_threads_per_sm = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  facts.max_shared_bytes = bytes(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  facts.max_shared_bytes_per_sm = bytes(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  facts.registers_per_sm = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  facts.l2_bytes = bytes(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  facts.simulated = driver.simulated;
  return facts;
}

std::optional<CUdevice> current_device(const Driver& driver) noexcept {
  CUcontext context = nullptr;
  if (driver.cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr) return std::nullopt;
  CUdevice device = 0;
  if (driver.cuCtxGetDevice(&device) != CUDA_SUCCESS) return std::nullopt;
  return device;
}

}  // namespace contextune::gpu
