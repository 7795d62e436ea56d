#include "intercept/submit/outside_memory.hpp"

#include <algorithm>
#include <cstring>
#include <exception>

namespace contextune::intercept {

bool OutsideMemory::is_reached_by(const contextune_launch& call, const SubmittedKernel& kernel,
                                  CUcontext context) noexcept {
  if ((context != context_ || version_ != memory_.changes().outside_version(device_)) &&
      !refresh(context)) {
    return true;
  }
  if (ranges_.empty()) return false;
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    const auto* const bytes = static_cast<const char*>(call.kernel_params[i]);
    const std::size_t size = kernel.parameters[i].size_bytes;
    std::uint64_t word = 0;
    for (std::size_t at = 0; at + sizeof word <= size; at += sizeof word) {
      std::memcpy(&word, bytes + at, sizeof word);
      if (has(word)) return true;
    }
  }
  return false;
}

bool OutsideMemory::has(std::uint64_t address) const noexcept {
  if (address < ranges_.front().begin || address >= ranges_.back().end) return false;
  const auto next =
      std::upper_bound(ranges_.begin(), ranges_.end(), address,
                       [](std::uint64_t value, const Range& one) { return value < one.begin; });
  return address < std::prev(next)->end;
}

bool OutsideMemory::refresh(CUcontext context) noexcept {
  context_ = nullptr;
  if (driver_.cuCtxGetDevice(&device_) != CUDA_SUCCESS) return false;
  try {
    version_ = memory_.changes().outside_version(device_);
    ranges_.clear();
    for (const Allocation& one : memory_.allocations().outside_of(device_)) {
      ranges_.push_back({one.begin, one.end()});
    }
    context_ = context;
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace contextune::intercept
