#include "api/limits.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>

#include <contextune/launch_limits.hpp>

#include "api/given_struct.hpp"
#include "api/last_error.hpp"
#include "api/process.hpp"
#include "gpu/driver/device_facts.hpp"
#include "gpu/image/kernel_identity.hpp"
#include "gpu/image/launch_limits.hpp"

namespace contextune::api {
namespace {

/// Copies as much of `from` as the caller's struct has room for.
template <class Struct>
void give(Struct* to, Struct from) noexcept {
  from.size = to->size;
  std::memcpy(static_cast<void*>(to), &from, std::min(to->size, sizeof from));
}

/// The driver and the device of this thread's context. Null, and the failure kept: there is none.
const gpu::Driver* driver_with_device(CUdevice& device) noexcept {
  const gpu::Driver* cuda = runtime() != nullptr || driver_in_use() ? driver() : nullptr;
  const auto current = cuda == nullptr ? std::optional<CUdevice>() : gpu::current_device(*cuda);
  if (!current) {
    fail(cuda == nullptr ? "there is no CUDA driver in use; call this after CUDA was initialised"
                         : "no CUDA context is current on this thread; make one current");
    return nullptr;
  }
  device = *current;
  return cuda;
}

}  // namespace

contextune_place current_place() noexcept {
  intercept::Runtime* now = runtime();
  if (now == nullptr) return contextune_place_untuned;
  if (now->is_in_region()) return contextune_place_region;
  return now->is_capturing() ? contextune_place_capture : contextune_place_free;
}

void note_capture(void* stream) noexcept {
  if (intercept::Runtime* now = runtime()) now->note_capture(static_cast<CUstream>(stream));
}

}  // namespace contextune::api

using namespace contextune;
using namespace contextune::api;

// These two need the program's driver, but no runtime: what they say is the same where contextune
// is switched off.
int contextune_current_device(contextune_device* device) {
  if (device == nullptr || device->size < sizeof device->size)
    return fail("contextune_current_device: set `size` to sizeof(contextune_device)");
  CUdevice current = 0;
  const gpu::Driver* cuda = driver_with_device(current);
  if (cuda == nullptr) return -1;
  const DeviceFacts facts = gpu::device_facts(*cuda, current);
  contextune_device found{};
  facts.name.copy(found.name, sizeof found.name - 1);
  found.num_sms = facts.num_sms;
  found.compute_capability = facts.compute_capability;
  found.max_threads_per_block = facts.max_threads_per_block;
  found.registers_per_sm = facts.registers_per_sm;
  found.max_shared_bytes = facts.max_shared_bytes;
  give(device, found);
  return 0;
}

int contextune_limits_of_kernel(const void* kernel, contextune_kernel_limits* limits) {
  if (kernel == nullptr || limits == nullptr || limits->size < sizeof limits->size) {
    return fail(
        "contextune_limits_of_kernel: give a kernel, and set `size` to "
        "sizeof(contextune_kernel_limits)");
  }
  CUdevice current = 0;
  const gpu::Driver* cuda = driver_with_device(current);
  if (cuda == nullptr) return -1;
  try {
    std::string why;
    auto* const handle = static_cast<CUfunction>(const_cast<void*>(kernel));
    const auto known = gpu::identify(*cuda, handle, why);
    if (!known) return fail(why);
    contextune_kernel_limits found{};
    found.max_threads_per_block = known->max_threads;
    found.registers = known->registers;
    found.static_shared_bytes = known->static_shared_bytes;
    found.max_dynamic_shared_bytes =
        gpu::max_dynamic_shared_bytes(gpu::device_facts(*cuda, current), *known);
    give(limits, found);
    return 0;
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

int contextune_launch_fits(const contextune_launch_shape* shape, const contextune_device* device,
                           const contextune_kernel_limits* kernel) {
  const bool has_sizes = shape != nullptr && shape->size != 0 &&
                         (device == nullptr || device->size != 0) &&
                         (kernel == nullptr || kernel->size != 0);
  if (!has_sizes) return fail("contextune_launch_fits: set `size` of each struct to its sizeof");
  try {
    const contextune_launch_shape given = whole_of(shape);
    const contextune_device on = whole_of(device);
    const contextune_kernel_limits of = whole_of(kernel);
    const auto extent = [](const uint32_t(&from)[3]) { return Dim3{from[0], from[1], from[2]}; };
    const std::string why =
        why_not(LaunchShape{extent(given.grid), extent(given.block), extent(given.cluster),
                            given.shared_bytes},
                KernelLimits{of.max_threads_per_block, of.registers, of.static_shared_bytes,
                             of.max_dynamic_shared_bytes},
                Device{on.num_sms,
                       on.compute_capability,
                       on.max_threads_per_block,
                       on.max_shared_bytes,
                       on.registers_per_sm,
                       {}});
    if (why.empty()) return 1;
    static_cast<void>(fail(why));
    return 0;
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}
