// Matrix products through cuBLASLt between cudaProfilerStart and cudaProfilerStop.
//   cublaslt [--steps N]
#include <vector>

#include <cublasLt.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>

#include "program.hpp"

int main(int argc, char** argv) {
  const long steps = option(argc, argv, "--steps", 100L);
  constexpr int m = 512;
  constexpr int n = 1024;
  constexpr int k = 768;
  constexpr std::size_t workspace_bytes = 32u << 20;

  std::vector<float> host(static_cast<std::size_t>(m) * n);
  const auto upload = [](std::size_t count, std::uint32_t seed) {
    std::vector<float> values(count);
    for (float& value : values) {
      seed = seed * 1664525u + 1013904223u;
      value = static_cast<float>(seed >> 16) / 65536.0f - 0.5f;
    }
    float* device = nullptr;
    CUDA_CHECK(cudaMalloc(&device, count * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(device, values.data(), count * sizeof(float), cudaMemcpyHostToDevice));
    return device;
  };
  float* a = upload(static_cast<std::size_t>(m) * k, 1);
  float* b = upload(static_cast<std::size_t>(k) * n, 2);
  float* c = upload(host.size(), 3);
  void* workspace = nullptr;
  CUDA_CHECK(cudaMalloc(&workspace, workspace_bytes));

  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t operation;
  cublasLtMatrixLayout_t layout_a;
  cublasLtMatrixLayout_t layout_b;
  cublasLtMatrixLayout_t layout_c;
  CUDA_CHECK(cublasLtCreate(&handle));
  CUDA_CHECK(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  CUDA_CHECK(cublasLtMatrixLayoutCreate(&layout_a, CUDA_R_32F, m, k, m));
  CUDA_CHECK(cublasLtMatrixLayoutCreate(&layout_b, CUDA_R_32F, k, n, k));
  CUDA_CHECK(cublasLtMatrixLayoutCreate(&layout_c, CUDA_R_32F, m, n, m));
  cublasLtMatmulPreference_t preference;
  CUDA_CHECK(cublasLtMatmulPreferenceCreate(&preference));
  CUDA_CHECK(cublasLtMatmulPreferenceSetAttribute(preference,
                                                  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                  &workspace_bytes, sizeof(workspace_bytes)));
  cublasLtMatmulHeuristicResult_t heuristic;
  int found = 0;
  CUDA_CHECK(cublasLtMatmulAlgoGetHeuristic(handle, operation, layout_a, layout_b, layout_c,
                                            layout_c, preference, 1, &heuristic, &found));
  if (found == 0) return 1;
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreate(&stream));

  const float alpha = 0.01f;
  const float beta = 0.5f;
  for (long step = 0; step < steps; ++step) {
    CUDA_CHECK(cudaProfilerStart());
    CUDA_CHECK(cublasLtMatmul(handle, operation, &alpha, a, layout_a, b, layout_b, &beta, c,
                              layout_c, c, layout_c, &heuristic.algo, workspace, workspace_bytes,
                              stream));
    CUDA_CHECK(cublasLtMatmul(handle, operation, &alpha, a, layout_a, b, layout_b, &beta, c,
                              layout_c, c, layout_c, &heuristic.algo, workspace, workspace_bytes,
                              stream));
    CUDA_CHECK(cudaProfilerStop());
    if (step % 8 == 7) CUDA_CHECK(cudaStreamSynchronize(stream));
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(host.data(), c, host.size() * sizeof(float), cudaMemcpyDeviceToHost));
  Checksum checksum;
  checksum.add(host.data(), host.size() * sizeof(float));
  checksum.print("cublaslt");
  return 0;
}
