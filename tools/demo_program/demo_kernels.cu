// The kernels of the demo on a real GPU. Every one but `normalise` is a grid-stride loop in which
// one thread computes one element at a time, always in the same order: block and grid change the
// speed and never a bit of the result.

namespace {

__device__ unsigned first() {
  return blockIdx.x * blockDim.x + threadIdx.x;
}
__device__ unsigned stride() {
  return gridDim.x * blockDim.x;
}

constexpr int taps = 8;
constexpr int tap_distance = 37;

__device__ float mix(int cols, const float* weights, const float* row, int column, float before) {
  float sum = before * 0.5f;
  for (int tap = 0; tap < taps; ++tap)
    sum += weights[tap * cols + column] * row[(column + tap * tap_distance) % cols];
  return sum;
}

// `Batch` elements in flight at a time, each one summed as above.
template <int Batch>
__device__ void project_elements(unsigned n, int cols, const float* weights, const float* y,
                                 float* x) {
  for (unsigned i = first(); i < n; i += Batch * stride()) {
    float results[Batch];
#pragma unroll
    for (int k = 0; k < Batch; ++k) {
      const unsigned at = i + k * stride();
      if (at < n) results[k] = mix(cols, weights, y + at / cols * cols, at % cols, x[at]);
    }
#pragma unroll
    for (int k = 0; k < Batch; ++k) {
      const unsigned at = i + k * stride();
      if (at < n) x[at] = results[k];
    }
  }
}

}  // namespace

// Turns neighbouring pairs of x by the angle of their column.
extern "C" __global__ void rotate(unsigned pairs, int pairs_per_row, const float* cosines,
                                  const float* sines, const float* x, float* q) {
  for (unsigned i = first(); i < pairs; i += stride()) {
    const float a = x[2 * i];
    const float b = x[2 * i + 1];
    const float c = cosines[i % pairs_per_row];
    const float s = sines[i % pairs_per_row];
    q[2 * i] = a * c - b * s;
    q[2 * i + 1] = a * s + b * c;
  }
}

// Keeps q in one slot of the ring of past values.
extern "C" __global__ void remember(unsigned n, const float* q, float* slot) {
  for (unsigned i = first(); i < n; i += stride()) slot[i] = q[i];
}
// The same, and tells the cache that nobody will ask for it soon.
extern "C" __global__ void remember_streaming(unsigned n, const float* q, float* slot) {
  for (unsigned i = first(); i < n; i += stride()) __stcs(slot + i, q[i]);
}

// y = q + the weighted past values, newest first.
extern "C" __global__ void attend(unsigned n, int slots, int newest, const float* q,
                                  const float* past, float* y) {
  for (unsigned i = first(); i < n; i += stride()) {
    float sum = q[i];
    int slot = newest;
    for (int age = 0; age < slots; ++age) {
      sum += past[static_cast<size_t>(slot) * n + i] * (1.0f / (2.0f + age));
      slot = slot == 0 ? slots - 1 : slot - 1;
    }
    y[i] = sum;
  }
}

// x = half of x + a few neighbours of y in its row.
extern "C" __global__ void project(unsigned n, int cols, const float* weights, const float* y,
                                   float* x) {
  project_elements<1>(n, cols, weights, y, x);
}
extern "C" __global__ void project_x2(unsigned n, int cols, const float* weights, const float* y,
                                      float* x) {
  project_elements<2>(n, cols, weights, y, x);
}
extern "C" __global__ void project_x4(unsigned n, int cols, const float* weights, const float* y,
                                      float* x) {
  project_elements<4>(n, cols, weights, y, x);
}

// Divides each row by its largest magnitude. One block a row; a maximum is exact in any order.
extern "C" __global__ void normalise(int cols, float* x) {
  __shared__ float largest[32];
  float* const row = x + static_cast<size_t>(blockIdx.x) * cols;
  float mine = 0.0f;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) mine = fmaxf(mine, fabsf(row[i]));
  for (int step = 16; step > 0; step /= 2)
    mine = fmaxf(mine, __shfl_xor_sync(0xFFFFFFFFu, mine, step));
  if (threadIdx.x % 32 == 0) largest[threadIdx.x / 32] = mine;
  __syncthreads();
  for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) mine = fmaxf(mine, largest[warp]);
  if (mine == 0.0f) return;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) row[i] = row[i] / mine;
}
