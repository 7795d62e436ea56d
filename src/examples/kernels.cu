// The kernels of the examples. kernels.ptx is made of them, once, so that no example needs nvcc:
//   nvcc -ptx -arch=compute_75 -fmad=false kernels.cu
// Its first lines then name the oldest PTX and GPU that will do.

// x *= factor
extern "C" __global__ void scale(float* x, float factor, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    x[i] *= factor;
}

// y += x
extern "C" __global__ void add(float* y, const float* x, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    y[i] += x[i];
}

// y = factor * x
extern "C" __global__ void scaled_copy(float* y, const float* x, float factor, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    y[i] = factor * x[i];
}

// y += factor * x, rounded twice, as by scaled_copy and add
extern "C" __global__ void scaled_add(float* y, const float* x, float factor, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    y[i] += factor * x[i];
}
