// The replay benchmark on the simulated driver: shows the same stages without a GPU. Its times are
// the simulation's.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "replay_region.hpp"
#include "simulated_kernels.hpp"

namespace {

using bench::require;
using replay_bench::columns;
using simcuda::argument;

constexpr unsigned update = SIMCUDA_READ | SIMCUDA_WRITE;

void relax(const simcuda_launch* launch) {
  const std::size_t n = argument<unsigned>(*launch, 0);
  auto* const state = argument<float*>(*launch, 1);
  const auto* const target = argument<const float*>(*launch, 2);
  for (std::size_t i = 0; i < n; ++i) state[i] = 0.5F * state[i] + 0.25F * target[i];
}
void describe_relax(const simcuda_launch* launch, simcuda_work* work) {
  const std::size_t n = argument<unsigned>(*launch, 0);
  work->items = static_cast<double>(n);
  work->flops = 3.0 * static_cast<double>(n);
  simcuda::touch(*work, argument<float*>(*launch, 1), n * 4, update);
  simcuda::touch(*work, argument<const float*>(*launch, 2), n * 4, SIMCUDA_READ);
}

void rescale(const simcuda_launch* launch) {
  for (std::size_t number = 0; number < launch->grid[0]; ++number) {
    float* const row = argument<float*>(*launch, 1) + number * columns;
    float largest = 0;
    for (int i = 0; i < columns; ++i) largest = std::max(largest, std::fabs(row[i]));
    if (largest == 0.0F) continue;
    for (int i = 0; i < columns; ++i) row[i] /= largest;
  }
}
void describe_rescale(const simcuda_launch* launch, simcuda_work* work) {
  const std::size_t n = std::size_t{launch->grid[0]} * columns;
  work->flops = 10.0 * static_cast<double>(n);
  // A barrier that costs more the more warps meet at it.
  work->block_cycles = 400.0 + 4.0 * launch->block[0];
  simcuda_access& state = simcuda::touch(*work, argument<float*>(*launch, 1), n * 4, update);
  state.passes = 2;
  state.tile_bytes = std::size_t{columns} * 4;
}

const simcuda_kernel relax_kernel =
    simcuda::whole_launch_kernel<unsigned, float*, const float*>("relax", &relax, &describe_relax);
const simcuda_kernel rescale_kernel =
    simcuda::whole_launch_kernel<int, float*>("rescale", &rescale, &describe_rescale);

class Simulated final : public replay_bench::Region {
 public:
  std::string prepare(int rows) override {
    static const std::array<const simcuda_kernel*, 2> kernels{&relax_kernel, &rescale_kernel};
    CUmodule module = bench::load_kernels(kernels, "access relax 1=rw 2=r\naccess rescale 1=rw\n");
    require(cuModuleGetFunction(&relax_, module, "relax"));
    require(cuModuleGetFunction(&rescale_, module, "rescale"));
    rows_ = rows;
    std::vector<float> values(count());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 97) / 97.0F;
    for (CUdeviceptr* buffer : {&state_, &target_}) {
      require(cuMemAlloc(buffer, size_bytes()));
      require(cuMemcpyHtoD(*buffer, values.data(), size_bytes()));
    }
    launch();
    synchronise();
    std::array<char, 128> name{};
    require(cuDeviceGetName(name.data(), static_cast<int>(name.size()), 0));
    return name.data();
  }
  [[nodiscard]] bool simulated() const override { return true; }
  [[nodiscard]] int usual_mib() const override { return 1; }

  void launch() override {
    auto n = static_cast<unsigned>(count());
    int width = columns;
    void* relax[] = {&n, &state_, &target_};
    require(cuLaunchKernel(relax_, 132, 1, 1, 128, 1, 1, 0, nullptr, relax, nullptr));
    void* rescale[] = {&width, &state_};
    require(cuLaunchKernel(rescale_, static_cast<unsigned>(rows_), 1, 1, 1024, 1, 1, 0, nullptr,
                           rescale, nullptr));
  }
  void synchronise() override { require(cuCtxSynchronize()); }
  [[nodiscard]] std::vector<contextune::DeviceSpan> written() const override {
    return {{reinterpret_cast<void*>(state_), size_bytes()}};
  }
  [[nodiscard]] std::vector<float> state() const override {
    std::vector<float> values(count());
    require(cuMemcpyDtoH(values.data(), state_, size_bytes()));
    return values;
  }

 private:
  [[nodiscard]] std::size_t count() const { return static_cast<std::size_t>(rows_) * columns; }
  [[nodiscard]] std::size_t size_bytes() const { return count() * sizeof(float); }

  int rows_ = 0;
  CUfunction relax_ = nullptr;
  CUfunction rescale_ = nullptr;
  CUdeviceptr state_ = 0;
  CUdeviceptr target_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Simulated region;
  return replay_bench::run(argc, argv, region);
}
