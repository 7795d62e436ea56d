// Kernels for the tests of src/gpu on a real GPU; loaded from their cubin, fatbin, PTX or source.
extern "C" __global__ void saxpy(float* y, const float* x, float a, int n) {
  const int stride = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) y[i] = a * x[i] + y[i];
}

// Takes as long as its n says, whatever the caches hold.
extern "C" __global__ void spin(float* y, const float*, float a, int n) {
  float value = a;
#pragma unroll 16
  for (int i = 0; i < n; ++i) value = fmaf(value, a, 1.0f);
  if (value == 0.0f) y[0] = value;
}

template <int Width, int Height>
__global__ void tile(float* y, int n) {
  __shared__ float row[Width * Height];
  const int i = blockIdx.x * Width * Height + threadIdx.x;
  row[threadIdx.x] = i < n ? y[i] : 0.0f;
  __syncthreads();
  if (i < n) y[i] = row[threadIdx.x] + 1.0f;
}
template __global__ void tile<32, 8>(float*, int);
template __global__ void tile<16, 16>(float*, int);
