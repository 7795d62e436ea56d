// The tuning benchmark on the simulated driver: shows the same stages without a GPU. Its times are
// the simulation's.
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "simulated_kernels.hpp"
#include "tuning_runs.hpp"

namespace {

using bench::require;
using simcuda::argument;
using tuning_bench::columns;
using tuning_bench::rows;

constexpr std::size_t n = std::size_t{rows} * columns;
// Computed and checked; all rows would take minutes.
constexpr std::array<std::size_t, 3> sample_rows{0, 1, rows - 1};

void axpy(const simcuda_launch* launch) {
  const float a = argument<float>(*launch, 1);
  const auto* x = argument<const float*>(*launch, 2);
  const auto* y = argument<const float*>(*launch, 3);
  auto* z = argument<float*>(*launch, 4);
  for (const std::size_t row : sample_rows)
    for (std::size_t i = row * columns; i < (row + 1) * columns; ++i) z[i] = a * x[i] + y[i];
}

void describe_axpy(const simcuda_launch* launch, simcuda_work* work) {
  work->flops = 2.0 * n;
  simcuda::touch(*work, argument<const float*>(*launch, 2), n * 4, SIMCUDA_READ);
  simcuda::touch(*work, argument<const float*>(*launch, 3), n * 4, SIMCUDA_READ);
  simcuda::touch(*work, argument<float*>(*launch, 4), n * 4, SIMCUDA_WRITE);
}

void softmax(const simcuda_launch* launch) {
  const auto* in = argument<const float*>(*launch, 1);
  auto* out = argument<float*>(*launch, 2);
  for (const std::size_t row : sample_rows) {
    float sum = 0;
    for (std::size_t i = row * columns; i < (row + 1) * columns; ++i) sum += std::exp(in[i]);
    for (std::size_t i = row * columns; i < (row + 1) * columns; ++i)
      out[i] = std::exp(in[i]) / sum;
  }
}

void describe_softmax(const simcuda_launch* launch, simcuda_work* work) {
  work->flops = 20.0 * n;
  // Two reductions, each with a barrier that costs more the more warps meet at it.
  work->block_cycles = 400.0 + 4.0 * launch->block[0];
  simcuda_access& in =
      simcuda::touch(*work, argument<const float*>(*launch, 1), n * 4, SIMCUDA_READ);
  in.passes = 3;
  in.tile_bytes = std::size_t{columns} * 4;
  simcuda::touch(*work, argument<float*>(*launch, 2), n * 4, SIMCUDA_WRITE);
}

const simcuda_kernel axpy_kernel =
    simcuda::whole_launch_kernel<int, float, const float*, const float*, float*>("axpy", &axpy,
                                                                                 &describe_axpy);
const simcuda_kernel softmax_kernel =
    simcuda::whole_launch_kernel<int, const float*, float*>("softmax", &softmax, &describe_softmax);

class Simulated final : public tuning_bench::Gpu {
 public:
  std::string prepare() override {
    static const std::array<const simcuda_kernel*, 2> kernels{&axpy_kernel, &softmax_kernel};
    CUmodule module =
        bench::load_kernels(kernels, "access axpy 2=r 3=r 4=w\naccess softmax 1=r 2=w\n");
    require(cuModuleGetFunction(&axpy_, module, "axpy"));
    require(cuModuleGetFunction(&softmax_, module, "softmax"));
    require(cuDeviceGetAttribute(&num_sms_, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    std::vector<float> values(n);
    for (std::size_t i = 0; i < n; ++i) values[i] = value(i);
    for (CUdeviceptr* buffer : {&x_, &y_, &z_, &out_}) require(cuMemAlloc(buffer, n * 4));
    require(cuMemcpyHtoD(x_, values.data(), n * 4));
    require(cuMemcpyHtoD(y_, values.data(), n * 4));
    require(cuEventCreate(&begin_, CU_EVENT_DEFAULT));
    require(cuEventCreate(&end_, CU_EVENT_DEFAULT));
    std::array<char, 128> name{};
    require(cuDeviceGetName(name.data(), static_cast<int>(name.size()), 0));
    return name.data();
  }
  [[nodiscard]] bool simulated() const override { return true; }

  int axpy(const contextune::Config& config) override {
    int count = static_cast<int>(n);
    float a = 2.0F;
    void* arguments[] = {&count, &a, &x_, &y_, &z_};
    return launch(axpy_, config.get_int("per_sm") * num_sms_, config.get_int("block"), arguments);
  }
  int softmax(const contextune::Config& config) override {
    int width = columns;
    void* arguments[] = {&width, &z_, &out_};
    return launch(softmax_, rows, config.get_int("block"), arguments);
  }

  double time_region(const contextune::Config& axpy_config,
                     const contextune::Config& softmax_config, int times) override {
    require(cuEventRecord(begin_, nullptr));
    for (int i = 0; i < times; ++i) {
      axpy(axpy_config);
      softmax(softmax_config);
    }
    require(cuEventRecord(end_, nullptr));
    require(cuEventSynchronize(end_));
    float milliseconds = 0;
    require(cuEventElapsedTime(&milliseconds, begin_, end_));
    return static_cast<double>(milliseconds) * 1e-3 / times;
  }

  bool check() override {
    std::vector<float> row(columns);
    for (const std::size_t number : sample_rows) {
      require(cuMemcpyDtoH(row.data(), out_ + number * columns * 4, columns * 4));
      double sum = 0;
      for (std::size_t i = 0; i < columns; ++i) sum += std::exp(3.0 * value(number * columns + i));
      for (std::size_t i = 0; i < columns; ++i) {
        const double expected = std::exp(3.0 * value(number * columns + i)) / sum;
        if (std::abs(static_cast<double>(row[i]) - expected) > 1e-6) return false;
      }
    }
    return true;
  }
  void synchronise() override { require(cuCtxSynchronize()); }

 private:
  static float value(std::size_t i) { return static_cast<float>(i % 97) / 97.0F; }
  static int launch(CUfunction function, std::int64_t grid, std::int64_t block, void** arguments) {
    return cuLaunchKernel(function, static_cast<unsigned>(grid), 1, 1, static_cast<unsigned>(block),
                          1, 1, 0, nullptr, arguments, nullptr);
  }

  int num_sms_ = 0;
  CUfunction axpy_ = nullptr;
  CUfunction softmax_ = nullptr;
  CUdeviceptr x_ = 0;
  CUdeviceptr y_ = 0;
  CUdeviceptr z_ = 0;
  CUdeviceptr out_ = 0;
  CUevent begin_ = nullptr;
  CUevent end_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  Simulated gpu;
  return tuning_bench::run(argc, argv, gpu);
}
