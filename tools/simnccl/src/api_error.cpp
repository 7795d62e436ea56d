// Version, errors and memory: what needs no communicator.
#include <cuda.h>

#include "settings.hpp"

using namespace simnccl;

namespace simnccl {

std::string& last_error() {
  static thread_local std::string text;
  return text;
}

}  // namespace simnccl

SIMNCCL_FUNCTION(ncclResult_t, ncclGetVersion, (int* version)) {
  if (version == nullptr) return ncclInvalidArgument;
  *version = Settings::instance().version;
  return ncclSuccess;
}

SIMNCCL_FUNCTION(const char*, ncclGetErrorString, (ncclResult_t result)) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}

SIMNCCL_FUNCTION(const char*, ncclGetLastError, (ncclComm_t)) {
  return last_error().c_str();
}

SIMNCCL_FUNCTION(ncclResult_t, ncclMemAlloc, (void** ptr, size_t size)) {
  CUdeviceptr memory = 0;
  if (ptr == nullptr || cuMemAlloc(&memory, size) != CUDA_SUCCESS) return ncclUnhandledCudaError;
  *ptr = reinterpret_cast<void*>(memory);
  return ncclSuccess;
}

SIMNCCL_FUNCTION(ncclResult_t, ncclMemFree, (void* ptr)) {
  return cuMemFree(reinterpret_cast<CUdeviceptr>(ptr)) == CUDA_SUCCESS ? ncclSuccess
                                                                       : ncclUnhandledCudaError;
}
