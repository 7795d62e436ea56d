#pragma once

// How launched_configs gets its kernels and hears of their launches, on the simulated driver and on a GPU.
#include <cuda.h>

#include <cstddef>
#include <vector>

/// kernel_0 to kernel_<num_kernels - 1>, in the current context; null, said on standard error.
/// Arguments: the number of elements, a value, an int buffer.
CUmodule load_kernels(std::size_t num_kernels);

/// Threads of each launch's block, in the order of the launches, as they came to the driver.
std::vector<unsigned> launched_blocks();
