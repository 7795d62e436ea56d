#pragma once

#include <cuda.h>

#include "error.hpp"

namespace simnccl {

/// Makes a context the calling thread's current one for a while.
class CurrentContext {
 public:
  /// @throws Error
  explicit CurrentContext(CUcontext context) {
    require(cuCtxPushCurrent(context) == CUDA_SUCCESS, ncclUnhandledCudaError,
            "the context of the communicator is gone");
  }
  ~CurrentContext() {
    CUcontext popped = nullptr;
    cuCtxPopCurrent(&popped);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
};

}  // namespace simnccl
