// One region whose work goes to every GPU of the machine, from one thread.
//   two_gpus [--steps N]
#include <vector>

#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#include "program.hpp"
#include "strided_kernels.cuh"

constexpr int elements = 1 << 22;

int main(int argc, char** argv) {
  const long steps = option(argc, argv, "--steps", 4000L);
  int devices = 0;
  CUDA_CHECK(cudaGetDeviceCount(&devices));
  std::vector<float> values(elements);
  for (int i = 0; i < elements; ++i) values[i] = static_cast<float>(i % 1000) * 1e-3f;
  std::vector<float*> sums(devices);
  std::vector<float*> terms(devices);
  for (int device = 0; device < devices; ++device) {
    CUDA_CHECK(cudaSetDevice(device));
    for (float** to : {&sums[device], &terms[device]}) {
      CUDA_CHECK(cudaMalloc(to, elements * sizeof(float)));
      CUDA_CHECK(cudaMemcpy(*to, values.data(), elements * sizeof(float), cudaMemcpyHostToDevice));
    }
  }
  for (long step = 0; step < steps; ++step) {
    nvtxRangePushA("step");
    for (int device = 0; device < devices; ++device) {
      CUDA_CHECK(cudaSetDevice(device));
      accumulate<<<132, 128>>>(sums[device], terms[device],
                               1.0f / static_cast<float>(step + device + 1), elements);
    }
    nvtxRangePop();
    if (step % 8 != 7) continue;
    for (int device = 0; device < devices; ++device) {
      CUDA_CHECK(cudaSetDevice(device));
      CUDA_CHECK(cudaDeviceSynchronize());
    }
  }
  Checksum checksum;
  for (int device = 0; device < devices; ++device) {
    CUDA_CHECK(cudaSetDevice(device));
    CUDA_CHECK(
        cudaMemcpy(values.data(), sums[device], elements * sizeof(float), cudaMemcpyDeviceToHost));
    checksum.add(values.data(), elements * sizeof(float));
  }
  checksum.print("two_gpus");
  return 0;
}
