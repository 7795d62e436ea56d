// Kernels for the tests of src/gpu on a real GPU; loaded from their cubin, fatbin, PTX or source.
extern "C" __global__ void saxpy(float* y, const float* x, float a, int n) {
  const int stride = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) y[i] = a * x[i] + y[i];
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
