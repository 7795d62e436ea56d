// The kernels of the tensor-parallel demo on a real GPU. Whole numbers are computed with, so that
// no order of additions, within a GPU or between several, changes a bit; and every kernel but
// `normalise` is a grid-stride loop, so that no block and grid does.

namespace {

__device__ unsigned first() {
  return blockIdx.x * blockDim.x + threadIdx.x;
}
__device__ unsigned stride() {
  return gridDim.x * blockDim.x;
}

constexpr int taps = 8;

__device__ int clamped(int value) {
  return min(max(value, -127), 127);
}

}  // namespace

// This rank's part of the hidden values: columns begin, begin + 1, ... of x and their neighbours.
extern "C" __global__ void expand(unsigned n, int width, int part, int begin, const int* weights,
                                  const int* x, int* hidden) {
  for (unsigned i = first(); i < n; i += stride()) {
    const int* const row = x + i / part * width;
    const int column = i % part;
    int sum = 0;
    for (int tap = 0; tap < taps; ++tap)
      sum += weights[tap * part + column] * row[(begin + column + tap * 37) % width];
    hidden[i] = min(max(sum, 0) >> 6, 127);
  }
}

// What this rank's hidden values add to every column of y.
extern "C" __global__ void contract(unsigned n, int width, int part, const int* weights,
                                    const int* hidden, int* y) {
  for (unsigned i = first(); i < n; i += stride()) {
    const int* const row = hidden + i / width * part;
    const int column = i % width;
    int sum = 0;
    for (int tap = 0; tap < taps; ++tap)
      sum += weights[tap * width + column] * row[(column + tap * 53) % part];
    y[i] = sum;
  }
}

// x = half of x + what all ranks added.
extern "C" __global__ void settle(unsigned n, const int* y, int* x) {
  for (unsigned i = first(); i < n; i += stride()) x[i] = clamped((x[i] >> 1) + (y[i] >> 8));
}

// What this rank's weights add to every value, from its neighbours in the row.
extern "C" __global__ void mix(unsigned n, int width, int begin, const int* weights, const int* x,
                               int* y) {
  for (unsigned i = first(); i < n; i += stride()) {
    const int* const row = x + i / width * width;
    const int column = i % width;
    int sum = 0;
    for (int tap = 0; tap < taps; ++tap)
      sum += weights[tap * width + column] * row[(begin + column + tap * 29) % width];
    y[i] = sum;
  }
}

// Keeps x in one slot of the past.
extern "C" __global__ void remember(unsigned n, const int* x, int* slot) {
  for (unsigned i = first(); i < n; i += stride()) slot[i] = x[i];
}

// Brings each row to a largest magnitude of 127. One block a row.
extern "C" __global__ void normalise(int width, int* rows) {
  __shared__ int largest[32];
  int* const row = rows + static_cast<size_t>(blockIdx.x) * width;
  int mine = 1;
  for (int i = threadIdx.x; i < width; i += blockDim.x) mine = max(mine, abs(row[i]));
  for (int step = 16; step > 0; step /= 2)
    mine = max(mine, __shfl_xor_sync(0xFFFFFFFFu, mine, step));
  if (threadIdx.x % 32 == 0) largest[threadIdx.x / 32] = mine;
  __syncthreads();
  for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) mine = max(mine, largest[warp]);
  for (int i = threadIdx.x; i < width; i += blockDim.x) row[i] = row[i] * 127 / mine;
}
