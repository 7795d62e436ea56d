// A kernel that launches another; not linked to the device's runtime.
__device__ int launched;
extern "C" __global__ void child() {
  ++launched;
}
extern "C" __global__ void parent() {
  child<<<1, 1>>>();
}
