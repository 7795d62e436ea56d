// The kernel of the Python test, as a kernel file of the simulated driver.
#include <simcuda/kernel.hpp>

namespace {

void describe(const simcuda_launch* launch, simcuda_work* work) {
  work->block_cycles = launch->block[0] == 128 ? 20e3 : 60e3;
}
const simcuda_kernel paced = simcuda::whole_launch_kernel<>("paced", nullptr, &describe);

}  // namespace

SIMCUDA_KERNEL_FILE(&paced);
