// The kernels of the Python tests, as a kernel file of the simulated driver.
#include <simcuda/kernel.hpp>

namespace {

void add(const simcuda::Thread& thread, int n, float value, float* y) {
  for (std::size_t i = thread.global_x(); i < static_cast<std::size_t>(n); i += thread.stride_x())
    y[i] += value;
}
void set(const simcuda::Thread& thread, int n, float value, float* y) {
  for (std::size_t i = thread.global_x(); i < static_cast<std::size_t>(n); i += thread.stride_x())
    y[i] = value;
}

// Nothing but a serial part that depends on the block, so that it is known which config is best.
void describe(const simcuda_launch* launch, simcuda_work* work) {
  work->block_cycles = launch->block[0] == 128 ? 20e3 : launch->block[0] == 64 ? 30e3 : 60e3;
}

const simcuda_kernel add_kernel = simcuda::per_thread_kernel<&add>("add", &describe);
const simcuda_kernel set_kernel = simcuda::per_thread_kernel<&set>("set", &describe);

}  // namespace

SIMCUDA_KERNEL_FILE(&add_kernel, &set_kernel);
