#pragma once

// How launched_configs gets its kernels and hears of their launches, on the simulated driver and on
// a GPU.
#include <cuda.h>

#include <cstddef>
#include <vector>

/// kernel_0 to kernel_<num_kernels - 1>, in the current context; null, said on standard error.
/// Arguments: the number of elements, a value, an int buffer.
CUmodule load_kernels(std::size_t num_kernels);

/// Threads of the block of each launch of these kernels, in the order in which they came to the
/// driver.
std::vector<unsigned> launched_blocks(const std::vector<CUfunction>& kernels);
