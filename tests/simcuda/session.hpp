#pragma once

#include <cuda.h>
#include <simcuda/kernel.hpp>

#include <cstddef>
#include <vector>

#include "catch.hpp"

/// One context on a simulated device without noise, with the kernels of test_kernels.cpp loaded.
/// Cleans up, and clears faults, at the end of the test.
class Session {
 public:
  explicit Session(int device = 0);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] CUfunction function(const char* name) const;
  /// Device memory that lives as long as the session; zeros.
  [[nodiscard]] CUdeviceptr memory(std::size_t bytes);
  [[nodiscard]] std::vector<float> floats(CUdeviceptr from, std::size_t count) const;
  /// Launches and gives back the result; `arguments` are addresses.
  CUresult launch(CUfunction function, unsigned grid, unsigned block,
                  std::vector<void*> arguments = {}, unsigned shared_bytes = 0,
                  CUstream stream = nullptr) const;
  /// Noise-free seconds of the last kernel.
  [[nodiscard]] double last_time() const { return simcuda_last_kernel_noise_free_time(device_); }

  CUcontext context = nullptr;
  CUmodule module = nullptr;

 private:
  int device_;
  std::vector<CUdeviceptr> memory_;
};

/// The text of a module image with all kernels of test_kernels.cpp.
[[nodiscard]] const char* test_image();

/// CHECK for a driver call that must succeed.
#define SUCCEEDS(CALL) CHECK((CALL) == CUDA_SUCCESS)
