#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include <contextune/device.hpp>
#include <contextune/dim3.hpp>

struct CUfunc_st;
struct CUkern_st;

namespace contextune {

/// How a kernel is to be launched. A plain value.
struct LaunchShape {
  Dim3 grid = {};
  Dim3 block = {};
  Dim3 cluster = {0, 0, 0};      ///< blocks; zeros: none asked for
  std::size_t shared_bytes = 0;  ///< dynamic shared memory
};

/// The limits of a compiled kernel. A number is 0 where it is not known, except for static shared
/// memory. A plain value.
struct KernelLimits {
  int max_threads_per_block = 0;
  int registers = 0;  ///< of a thread
  std::size_t static_shared_bytes = 0;
  /// The most that a block may ask for on the device, if the program opts in.
  std::size_t max_dynamic_shared_bytes = 0;
};

/// Limits of a kernel on the current device, by the driver's handle: a CUfunction or a CUkernel.
/// Nothing is known where the driver cannot tell, or there is none.
[[nodiscard]] KernelLimits kernel_limits(const CUfunc_st* kernel) noexcept;
[[nodiscard]] KernelLimits kernel_limits(const CUkern_st* kernel) noexcept;

namespace detail {
/// By the address of a __global__ function on the host. Found where the CUDA runtime is a shared
/// library.
[[nodiscard]] KernelLimits limits_of_symbol(const void* kernel) noexcept;
}  // namespace detail

/// Limits of a __global__ function on the current device. Code that is not compiled by nvcc finds
/// them where the CUDA runtime is linked as a shared library; else nothing is known.
template <class Result, class... Parameters>
[[nodiscard]] KernelLimits kernel_limits(Result (*kernel)(Parameters...)) noexcept {
  const void* const symbol = reinterpret_cast<const void*>(kernel);
#ifdef __CUDACC__
  cudaFunction_t function = nullptr;
  if (cudaGetFuncBySymbol(&function, symbol) == cudaSuccess) {
    return kernel_limits(static_cast<const CUfunc_st*>(function));
  }
  static_cast<void>(cudaGetLastError());
  return {};
#else
  return detail::limits_of_symbol(symbol);
#endif
}

/// Why such a launch cannot be made, a clause that names the numbers: "a block has 2048 threads,
/// and the device allows 1024". Empty: it fits. Unknown limits are not held against it.
[[nodiscard]] std::string why_not(const LaunchShape& shape, const Device& device);
/// The same for the limits of the compiled kernel.
[[nodiscard]] std::string why_not(const LaunchShape& shape, const KernelLimits& kernel,
                                  const Device& device);

}  // namespace contextune
