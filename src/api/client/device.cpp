// Facts that the driver knows of the device and of kernels.
#include <contextune/device.hpp>

#include <dlfcn.h>

#include <contextune/contextune.h>
#include <contextune/launch_limits.hpp>

namespace contextune {
namespace {

KernelLimits limits_of(const void* kernel) noexcept {
  contextune_kernel_limits found{};
  found.size = sizeof found;
  if (contextune_limits_of_kernel(kernel, &found) != 0) return {};
  return {found.max_threads_per_block, found.registers, found.static_shared_bytes,
          found.max_dynamic_shared_bytes};
}

}  // namespace

Device current_device() noexcept {
  contextune_device found{};
  found.size = sizeof found;
  if (contextune_current_device(&found) != 0) return {};
  Device device{found.num_sms, found.compute_capability, found.max_threads_per_block,
                found.max_shared_bytes, found.registers_per_sm};
  try {
    device.name = found.name;
  } catch (const std::exception&) {
    // Without memory it stays nameless.
  }
  return device;
}

KernelLimits kernel_limits(const CUfunc_st* kernel) noexcept {
  return limits_of(kernel);
}
KernelLimits kernel_limits(const CUkern_st* kernel) noexcept {
  return limits_of(kernel);
}

KernelLimits detail::limits_of_symbol(const void* kernel) noexcept {
  using ByFunction = int (*)(void** function, const void* symbol);
  const auto find = reinterpret_cast<ByFunction>(dlsym(RTLD_DEFAULT, "cudaGetFuncBySymbol"));
  void* function = nullptr;
  if (find == nullptr || find(&function, kernel) != 0) return {};
  return limits_of(function);
}

}  // namespace contextune
