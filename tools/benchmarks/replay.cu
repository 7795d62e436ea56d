// The replay benchmark on a real GPU: two kernels of the CUDA runtime API.
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "replay_region.hpp"

// As a program declares them: their names are those of the space file.
__global__ void relax(unsigned n, float* state, const float* target) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    state[i] = 0.5F * state[i] + 0.25F * target[i];
}

// One block a row; a maximum is exact in any order.
__global__ void rescale(int columns, float* state) {
  __shared__ float largest[32];
  float* const row = state + static_cast<std::size_t>(blockIdx.x) * columns;
  float mine = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) mine = fmaxf(mine, fabsf(row[i]));
  for (int offset = 16; offset > 0; offset /= 2)
    mine = fmaxf(mine, __shfl_xor_sync(0xffffffffU, mine, offset));
  if (threadIdx.x % 32 == 0) largest[threadIdx.x / 32] = mine;
  __syncthreads();
  for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) mine = fmaxf(mine, largest[warp]);
  if (mine == 0) return;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) row[i] /= mine;
}

namespace {

using replay_bench::columns;

void require(cudaError_t result) {
  if (result != cudaSuccess) throw std::runtime_error(cudaGetErrorString(result));
}

class Cuda final : public replay_bench::Region {
 public:
  std::string prepare(int rows) override {
    cudaDeviceProp properties{};
    require(cudaGetDeviceProperties(&properties, 0));
    rows_ = rows;
    std::vector<float> values(count());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 97) / 97.0F;
    for (float** buffer : {&state_, &target_}) {
      require(cudaMalloc(buffer, size_bytes()));
      require(cudaMemcpy(*buffer, values.data(), size_bytes(), cudaMemcpyHostToDevice));
    }
    launch();
    synchronise();
    return properties.name;
  }
  bool simulated() const override { return false; }
  int usual_mib() const override { return 32; }

  void launch() override {
    // One block an SM of the GPU that the author had.
    relax<<<132, 128>>>(static_cast<unsigned>(count()), state_, target_);
    rescale<<<rows_, 1024>>>(columns, state_);
    require(cudaGetLastError());
  }
  void synchronise() override { require(cudaDeviceSynchronize()); }
  std::vector<contextune::DeviceSpan> written() const override { return {{state_, size_bytes()}}; }
  std::vector<float> state() const override {
    std::vector<float> values(count());
    require(cudaMemcpy(values.data(), state_, size_bytes(), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  std::size_t count() const { return static_cast<std::size_t>(rows_) * columns; }
  std::size_t size_bytes() const { return count() * sizeof(float); }

  int rows_ = 0;
  float* state_ = nullptr;
  float* target_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  Cuda region;
  return replay_bench::run(argc, argv, region);
}
