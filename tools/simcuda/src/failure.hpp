#pragma once

#include "cuda_api.hpp"

namespace simcuda {

/// Thrown inside the driver to leave an entry point with an error code.
struct Failure {
  CUresult code;
};

inline void require(bool condition, CUresult code = CUDA_ERROR_INVALID_VALUE) {
  if (!condition) throw Failure{code};
}

}  // namespace simcuda
