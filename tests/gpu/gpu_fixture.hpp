#pragma once

#include <cstdlib>
#include <optional>
#include <string>

#include "gpu/driver/device_facts.hpp"
#include "gpu/driver/driver.hpp"

/// A driver, a context and two buffers for the tests on a real GPU. Lives as long as the test
/// program.
struct Gpu {
  contextune::gpu::Driver driver = contextune::gpu::open_driver();
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUdeviceptr x = 0;
  CUdeviceptr y = 0;
  static constexpr int elements = 96 << 20;

  Gpu() {
    using contextune::gpu::check;
    check(driver, driver.cuInit(0), "cuInit");
    check(driver, driver.cuDeviceGet(&device, 0), "cuDeviceGet");
    check(driver, driver.cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    check(driver, driver.cuCtxSetCurrent(context), "cuCtxSetCurrent");
    for (CUdeviceptr* buffer : {&x, &y}) {
      check(driver, driver.cuMemAlloc(buffer, elements * sizeof(float)), "cuMemAlloc");
      check(driver, driver.cuMemsetD8Async(*buffer, 0, elements * sizeof(float), CU_STREAM_LEGACY),
            "cuMemsetD8Async");
    }
    check(driver, driver.cuCtxSynchronize(), "cuCtxSynchronize");
  }

  /// saxpy over `n` elements.
  void launch(CUfunction saxpy, int n, unsigned grid = 528, unsigned block = 256) {
    float factor = 1.5f;
    void* arguments[] = {&y, &x, &factor, &n};
    contextune::gpu::check(driver,
                           driver.cuLaunchKernel(saxpy, grid, 1, 1, block, 1, 1, 0,
                                                 CU_STREAM_LEGACY, arguments, nullptr),
                           "cuLaunchKernel");
  }

  /// Where the build put sample_kernels.{cubin,fatbin,ptx,cu}.
  static std::string sample(const char* extension) {
    const char* folder = std::getenv("CONTEXTUNE_TEST_KERNELS");
    return std::string(folder != nullptr ? folder : CONTEXTUNE_TEST_KERNELS) + "/sample_kernels." +
           extension;
  }
};
