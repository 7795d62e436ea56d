// The tuning benchmark on a real GPU: kernels of the CUDA runtime API, tuned as tunables.
#include <cuda_runtime.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "tuning_runs.hpp"

namespace {

constexpr int n = tuning_bench::rows * tuning_bench::columns;

__global__ void axpy_kernel(int count, float a, const float* x, const float* y, float* z) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    z[i] = a * x[i] + y[i];
}

/// Maximum or sum over the block; everybody gets it.
template <class Combine>
__device__ float over_block(float value, float* shared, Combine combine) {
  for (int offset = 16; offset > 0; offset /= 2)
    value = combine(value, __shfl_xor_sync(0xffffffffU, value, offset));
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int num_warps = static_cast<int>(blockDim.x) / 32;
  __syncthreads();
  if (threadIdx.x % 32 == 0) shared[warp] = value;
  __syncthreads();
  value = shared[0];
  for (int i = 1; i < num_warps; ++i) value = combine(value, shared[i]);
  return value;
}

__global__ void softmax_kernel(int columns, const float* in, float* out) {
  __shared__ float shared[32];
  const float* row = in + static_cast<std::size_t>(blockIdx.x) * columns;
  float* result = out + static_cast<std::size_t>(blockIdx.x) * columns;
  float most = -INFINITY;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) most = fmaxf(most, row[i]);
  most = over_block(most, shared, [](float a, float b) { return fmaxf(a, b); });
  float sum = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += __expf(row[i] - most);
  sum = over_block(sum, shared, [](float a, float b) { return a + b; });
  for (int i = threadIdx.x; i < columns; i += blockDim.x) result[i] = __expf(row[i] - most) / sum;
}

void require(cudaError_t result) {
  if (result != cudaSuccess) throw std::runtime_error(cudaGetErrorString(result));
}

class Cuda final : public tuning_bench::Gpu {
 public:
  std::string prepare() override {
    cudaDeviceProp properties{};
    require(cudaGetDeviceProperties(&properties, 0));
    num_sms_ = properties.multiProcessorCount;
    std::vector<float> values(n);
    for (int i = 0; i < n; ++i)
      values[static_cast<std::size_t>(i)] = static_cast<float>(i % 97) / 97.0F;
    for (float** buffer : {&x_, &y_, &z_, &out_}) require(cudaMalloc(buffer, n * sizeof(float)));
    require(cudaMemcpy(x_, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    require(cudaMemcpy(y_, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    require(cudaEventCreate(&begin_));
    require(cudaEventCreate(&end_));
    for (const auto& config : tuning_bench::axpy_space().configs())
      require(static_cast<cudaError_t>(axpy(config)));
    for (const auto& config : tuning_bench::softmax_space().configs())
      require(static_cast<cudaError_t>(softmax(config)));
    synchronise();
    return properties.name;
  }
  bool simulated() const override { return false; }

  int axpy(const contextune::Config& config) override {
    const int block = static_cast<int>(config.get_int("block"));
    const int grid = static_cast<int>(config.get_int("per_sm")) * num_sms_;
    axpy_kernel<<<grid, block>>>(n, 2.0F, x_, y_, z_);
    return cudaGetLastError();
  }
  int softmax(const contextune::Config& config) override {
    softmax_kernel<<<tuning_bench::rows, static_cast<int>(config.get_int("block"))>>>(
        tuning_bench::columns, z_, out_);
    return cudaGetLastError();
  }

  double time_region(const contextune::Config& axpy_config,
                     const contextune::Config& softmax_config, int times) override {
    require(cudaEventRecord(begin_));
    for (int i = 0; i < times; ++i) {
      axpy(axpy_config);
      softmax(softmax_config);
    }
    require(cudaEventRecord(end_));
    require(cudaEventSynchronize(end_));
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, begin_, end_));
    return milliseconds * 1e-3 / times;
  }

  bool check() override {
    std::vector<float> row(tuning_bench::columns);
    for (const int number : {0, 1, tuning_bench::rows - 1}) {
      require(cudaMemcpy(row.data(), out_ + static_cast<std::size_t>(number) * row.size(),
                         row.size() * sizeof(float), cudaMemcpyDeviceToHost));
      double sum = 0;
      double expected_sum = 0;
      for (std::size_t i = 0; i < row.size(); ++i)
        expected_sum +=
            std::exp(3.0 * ((number * tuning_bench::columns + static_cast<int>(i)) % 97) / 97.0);
      for (std::size_t i = 0; i < row.size(); ++i) {
        const double z = 3.0 * ((number * tuning_bench::columns + static_cast<int>(i)) % 97) / 97.0;
        if (std::abs(row[i] - std::exp(z) / expected_sum) > 1e-6) return false;
        sum += row[i];
      }
      if (std::abs(sum - 1.0) > 1e-4) return false;
    }
    return true;
  }
  void synchronise() override { require(cudaDeviceSynchronize()); }

 private:
  int num_sms_ = 0;
  float* x_ = nullptr;
  float* y_ = nullptr;
  float* z_ = nullptr;
  float* out_ = nullptr;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  Cuda gpu;
  return tuning_bench::run(argc, argv, gpu);
}
