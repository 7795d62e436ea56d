#include "intercept/memory/process_memory.hpp"

#include <algorithm>
#include <exception>

namespace contextune::intercept {

void ProcessMemory::forget_context(CUcontext context) noexcept {
  if (context == nullptr) return;
  allocations_.forget_context(context);
  arrays_.forget_context(context);
}

void ProcessMemory::forget_device(int device, CUcontext primary) noexcept {
  forget_context(primary);
  const auto may_outlive = [&](const Allocation& one) {
    return one.device == device || (primary == nullptr && one.context != nullptr);
  };
  try {
    if (!std::ranges::any_of(allocations_.all(), may_outlive)) return;
  } catch (const std::exception&) {
    // No memory to look.
  }
  changes_.give_up("a device was reset while it held memory that may outlive that");
}

}  // namespace contextune::intercept
