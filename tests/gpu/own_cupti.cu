// A program that counts its kernels with CUPTI itself, from the middle of its run on.
//   own_cupti [--steps N]
#include <atomic>
#include <vector>

#include <cuda_runtime.h>
#include <cupti.h>
#include <nvtx3/nvToolsExt.h>

#include "program.hpp"
#include "strided_kernels.cuh"

static std::atomic<int> num_kernels{0};

static void CUPTIAPI request(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
  *size = 1 << 20;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, *size));
  *max_records = 0;
}

static void CUPTIAPI complete(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                              std::size_t valid) {
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) ++num_kernels;
  }
  std::free(buffer);
}

int main(int argc, char** argv) {
  const long steps = option(argc, argv, "--steps", 200L);
  constexpr int n = 1 << 20;
  float* data = nullptr;
  CUDA_CHECK(cudaMalloc(&data, n * sizeof(float)));
  CUDA_CHECK(cudaMemset(data, 0, n * sizeof(float)));
  for (long step = 0; step < steps; ++step) {
    if (step == steps / 2) {
      CUDA_CHECK(cudaDeviceSynchronize());
      CUDA_CHECK(cuptiActivityRegisterCallbacks(request, complete));
      CUDA_CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    }
    nvtxRangePushA("step");
    advance<<<256, 128>>>(data, 0.5f, n);
    advance<<<256, 128>>>(data, 0.75f, n);
    nvtxRangePop();
    if (step % 8 == 7) CUDA_CHECK(cudaDeviceSynchronize());
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cuptiActivityFlushAll(1));
  std::printf("own_cupti kernels %d of %ld\n", num_kernels.load(), 2 * (steps - steps / 2));
  std::vector<float> host(n);
  CUDA_CHECK(cudaMemcpy(host.data(), data, n * sizeof(float), cudaMemcpyDeviceToHost));
  Checksum checksum;
  checksum.add(host.data(), n * sizeof(float));
  checksum.print("own_cupti");
  return 0;
}
