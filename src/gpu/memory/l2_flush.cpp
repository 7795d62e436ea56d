#include "gpu/memory/l2_flush.hpp"

#include <cstddef>

namespace contextune::gpu {

void flush_l2(const Driver& driver) {
  CUdevice device = 0;
  int l2_bytes = 0;
  check(driver, driver.cuCtxGetDevice(&device), "cuCtxGetDevice");
  check(driver, driver.cuDeviceGetAttribute(&l2_bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device),
        "the size of the L2 cache");
  // Twice the size: the cache is not filled in the order of the addresses.
  const std::size_t bytes = 2 * static_cast<std::size_t>(l2_bytes);
  if (bytes == 0) return;
  CUdeviceptr memory = 0;
  check(driver, driver.cuMemAlloc(&memory, bytes), "memory to flush the L2 cache with");
  const CUresult written = driver.cuMemsetD8Async(memory, 0, bytes, nullptr);
  const CUresult done = driver.cuCtxSynchronize();
  (void)driver.cuMemFree(memory);
  check(driver, written, "flushing the L2 cache");
  check(driver, done, "flushing the L2 cache");
}

}  // namespace contextune::gpu
