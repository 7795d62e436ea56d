#include "contexts.hpp"

using namespace simcuda;

namespace {

void release_primary(CUdevice dev, bool all, DriverLock& lock) {
  Device& device = driver().device(dev);
  require(device.primary != nullptr || all, CUDA_ERROR_INVALID_CONTEXT);
  if (device.primary == nullptr) return;
  if (!all && --device.primary_references > 0) return;
  device.primary_references = 0;
  destroy_context(std::exchange(device.primary, nullptr), lock);
}

CUresult set_flags(CUdevice dev, unsigned flags) {
  Device& device = driver().device(dev);
  device.primary_flags = flags;
  if (device.primary != nullptr) device.primary->flags = flags;
  return CUDA_SUCCESS;
}

}  // namespace

SIMCUDA_ENTRY(cuDevicePrimaryCtxRetain, (CUcontext * pctx, CUdevice dev), {
  require(pctx != nullptr);
  Device& device = driver().device(dev);
  if (device.primary == nullptr) {
    device.primary = make_context(dev, device.primary_flags);
    device.primary->primary = true;
  }
  ++device.primary_references;
  *pctx = reinterpret_cast<CUcontext>(device.primary);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuDevicePrimaryCtxRelease, (CUdevice dev), {
  release_primary(dev, false, lock);
  return CUDA_SUCCESS;
})
SIMCUDA_ENTRY(cuDevicePrimaryCtxRelease_v2, (CUdevice dev), {
  release_primary(dev, false, lock);
  return CUDA_SUCCESS;
})
SIMCUDA_ENTRY(cuDevicePrimaryCtxReset, (CUdevice dev), {
  release_primary(dev, true, lock);
  return CUDA_SUCCESS;
})
SIMCUDA_ENTRY(cuDevicePrimaryCtxReset_v2, (CUdevice dev), {
  release_primary(dev, true, lock);
  return CUDA_SUCCESS;
})
SIMCUDA_ENTRY(cuDevicePrimaryCtxSetFlags, (CUdevice dev, unsigned int flags),
              { return set_flags(dev, flags); })
SIMCUDA_ENTRY(cuDevicePrimaryCtxSetFlags_v2, (CUdevice dev, unsigned int flags),
              { return set_flags(dev, flags); })

SIMCUDA_ENTRY(cuDevicePrimaryCtxGetState, (CUdevice dev, unsigned int* flags, int* active), {
  require(flags != nullptr && active != nullptr);
  const Device& device = driver().device(dev);
  *flags = device.primary_flags;
  *active = device.primary != nullptr ? 1 : 0;
  return CUDA_SUCCESS;
})
