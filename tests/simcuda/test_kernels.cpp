// The kernels of the tests, registered by the test program itself.
#include <simcuda/kernel.hpp>

#include <cstdint>

#include "session.hpp"

namespace {

using simcuda::argument;
using simcuda::Thread;

// y[i] += x[i] in a grid-stride loop.
void add(const Thread& thread, int n, const float* x, float* y) {
  for (std::size_t i = thread.global_x(); i < static_cast<std::size_t>(n); i += thread.stride_x())
    y[i] += x[i];
}

void describe_add(const simcuda_launch* launch, simcuda_work* work) {
  const auto n = static_cast<std::size_t>(argument<int>(*launch, 0));
  work->items = work->flops = static_cast<double>(n);
  simcuda::touch(*work, argument<const float*>(*launch, 1), n * 4, SIMCUDA_READ);
  simcuda::touch(*work, argument<float*>(*launch, 2), n * 4, SIMCUDA_READ | SIMCUDA_WRITE);
}

// x[i] = value; one form leaves its output in the cache, the other does not.
void fill(const simcuda_launch* launch) {
  const int n = argument<int>(*launch, 0);
  auto* const x = argument<float*>(*launch, 1);
  for (int i = 0; i < n; ++i) x[i] = argument<float>(*launch, 2);
}
void describe_fill(const simcuda_launch* launch, simcuda_work* work) {
  const auto n = static_cast<std::size_t>(argument<int>(*launch, 0));
  simcuda::touch(*work, argument<float*>(*launch, 1), n * 4, SIMCUDA_WRITE);
}
void describe_fill_streaming(const simcuda_launch* launch, simcuda_work* work) {
  const auto n = static_cast<std::size_t>(argument<int>(*launch, 0));
  simcuda::touch(*work, argument<float*>(*launch, 1), n * 4, SIMCUDA_WRITE | SIMCUDA_STREAMING);
}

void describe_arithmetic(const simcuda_launch*, simcuda_work* work) {
  work->flops = 2e9;
  work->instruction_parallelism = 1;
}

// Reads a table again and again, a block its own tile.
void describe_reuse(const simcuda_launch* launch, simcuda_work* work) {
  simcuda_access& table =
      simcuda::touch(*work, argument<const float*>(*launch, 0), 8 << 20, SIMCUDA_READ);
  table.passes = 32;
  table.tile_bytes = 24 << 10;
}

// Mixed parameters, to see where they lie: char, double, int, pointer.
void store_mixed(const simcuda_launch* launch) {
  auto* const out = argument<double*>(*launch, 3);
  out[0] = argument<char>(*launch, 0);
  out[1] = argument<double>(*launch, 1);
  out[2] = argument<int>(*launch, 2);
}

const simcuda_kernel empty = simcuda::whole_launch_kernel<>("empty", nullptr, nullptr);
const simcuda_kernel add_kernel = simcuda::per_thread_kernel<&add>("add", &describe_add);
const simcuda_kernel fill_kernel =
    simcuda::whole_launch_kernel<int, float*, float>("fill", &fill, &describe_fill);
const simcuda_kernel fill_streaming = simcuda::whole_launch_kernel<int, float*, float>(
    "fill_streaming", &fill, &describe_fill_streaming);
const simcuda_kernel arithmetic =
    simcuda::whole_launch_kernel<>("arithmetic", nullptr, &describe_arithmetic);
const simcuda_kernel reuse =
    simcuda::whole_launch_kernel<const float*>("reuse", nullptr, &describe_reuse);
const simcuda_kernel mixed =
    simcuda::whole_launch_kernel<char, double, int, double*>("mixed", &store_mixed, nullptr);

// counter[0] += n, where `counter` is a __device__ variable of the module.
void count(const simcuda_launch* launch) {
  *simcuda::global<int>(*launch, "counter") += argument<int>(*launch, 0);
}
const simcuda_kernel count_kernel = simcuda::whole_launch_kernel<int>("count", &count, nullptr);

simcuda_kernel hungry_kernel() {
  simcuda_kernel kernel =
      simcuda::whole_launch_kernel<>("gemm<64, 64>", nullptr, &describe_arithmetic);
  kernel.registers = 128;
  kernel.static_shared_bytes = 16 << 10;
  return kernel;
}
const simcuda_kernel hungry = hungry_kernel();

const simcuda_kernel* const kernels[] = {&empty,          &add_kernel, &fill_kernel,
                                         &fill_streaming, &arithmetic, &reuse,
                                         &mixed,          &hungry,     &count_kernel};

}  // namespace

const char* test_image() {
  static const simcuda_kernel_table table{SIMCUDA_VERSION, kernels, std::size(kernels)};
  static const bool registered = simcuda_register_kernels(&table) == 0;
  REQUIRE(registered);
  return R"(simcuda image 1
kernel empty
kernel add      # a comment
kernel fill
kernel fill_streaming
kernel arithmetic
kernel reuse
kernel mixed
kernel count
kernel gemm<64, 64>
global counter 16
)";
}
