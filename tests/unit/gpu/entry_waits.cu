// Kernels that can be given a wait at their entry, and kernels with one of their author's.
extern "C" __global__ void plain(float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2;
}
extern "C" __global__ void empty() {}
extern "C" __global__ void stack(int* x, int k) {
  int a[64];
  for (int i = 0; i < 64; ++i) a[x[i] & 63] = i;  // at places that no compiler knows
  x[0] = a[k & 63];
}
__device__ __noinline__ int function(int a, const int* x) {
  return a != 0 ? x[a] : 3;
}
extern "C" __global__ void calls(int* x) {
  x[0] = function(x[1], x);
}
__device__ int variable;
extern "C" __global__ void writes_variable() {
  variable = 1;
}
extern "C" __global__ void waits(float* x) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  x[threadIdx.x] = 1;
}
extern "C" __global__ void triggers(float* x) {
  x[threadIdx.x] = 1;
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
