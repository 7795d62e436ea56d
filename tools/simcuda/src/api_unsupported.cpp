// Entry points that programs probe for and that this device does not support, as some real ones do
// not.
#include "driver.hpp"

SIMCUDA_ENTRY(cuGreenCtxCreate, (CUgreenCtx*, CUdevResourceDesc, CUdevice, unsigned int),
              { return CUDA_ERROR_NOT_SUPPORTED; })
SIMCUDA_ENTRY(cuGreenCtxDestroy, (CUgreenCtx), { return CUDA_ERROR_INVALID_HANDLE; })
