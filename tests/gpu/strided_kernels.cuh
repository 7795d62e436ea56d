// Kernels that stride over a grid of any size: every block and grid computes the same.
#pragma once

__global__ void advance(float* data, float factor, int n) {
  const int stride = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
    data[i] = fmaf(data[i], factor, 0.125f);
  }
}

__global__ void accumulate(float* __restrict__ sum, const float* __restrict__ term, float factor,
                           int n) {
  const int stride = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
    sum[i] = fmaf(factor, term[i], sum[i]);
  }
}
