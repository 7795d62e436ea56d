// Other kernels for the region of regions.cu, bit for bit the same: loaded from a cubin, loaded
// from a fatbin, or built by NVRTC with a tile of another size.
#ifndef WIDTH
#define WIDTH 32
#define HEIGHT 4
#endif

extern "C" __global__ void accumulate_by_four(float4* __restrict__ sum,
                                              const float4* __restrict__ term, float factor,
                                              int n) {
  const int stride = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 4; i += stride) {
    const float4 more = term[i];
    float4 value = sum[i];
    value.x = fmaf(factor, more.x, value.x);
    value.y = fmaf(factor, more.y, value.y);
    value.z = fmaf(factor, more.z, value.z);
    value.w = fmaf(factor, more.w, value.w);
    sum[i] = value;
  }
}

extern "C" __global__ void smooth_tile(float* __restrict__ out, const float* __restrict__ in,
                                       int width, int height) {
  const int x = blockIdx.x * WIDTH + threadIdx.x;
  const int y = blockIdx.y * HEIGHT + threadIdx.y;
  if (x >= width || y >= height) return;
  const auto at = [&](int i, int j) {
    return in[min(max(j, 0), height - 1) * width + min(max(i, 0), width - 1)];
  };
  out[y * width + x] =
      0.5f * at(x, y) + 0.125f * (at(x - 1, y) + at(x + 1, y) + at(x, y - 1) + at(x, y + 1));
}
