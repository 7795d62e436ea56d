#include "intercept/submit/holdable_launches.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

namespace contextune::intercept {

bool HoldableLaunches::is_plain(const LaunchStream& stream) noexcept {
  if (plain_.contains(stream)) return true;
  int priority = 0;
  if (stream.handle == CU_STREAM_PER_THREAD || driver_.cuStreamGetPriority == nullptr ||
      driver_.cuStreamGetPriority(stream.handle, &priority) != CUDA_SUCCESS || priority != 0) {
    return false;
  }
  if (driver_.cuStreamGetGreenCtx != nullptr) {
    CUgreenCtx green = nullptr;
    if (driver_.cuStreamGetGreenCtx(stream.handle, &green) != CUDA_SUCCESS || green != nullptr) {
      return false;
    }
  }
  if (driver_.cuStreamGetAttribute != nullptr) {
    CUstreamAttrValue value{};
    const auto has = [&](CUstreamAttrID attribute) {
      return driver_.cuStreamGetAttribute(stream.handle, attribute, &value) == CUDA_SUCCESS;
    };
    if (!has(CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW) || value.accessPolicyWindow.num_bytes != 0)
      return false;
    // A driver that knows of no domains has one.
    if (has(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN) &&
        value.memSyncDomain != CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT)
      return false;
    if (has(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP) && value.memSyncDomainMap.default_ != 0)
      return false;
  }
  try {
    plain_.insert(stream);
  } catch (const std::exception&) {
    // Asked again.
  }
  return true;
}

void HoldableLaunches::accept(const contextune_launch& call, SubmittedKernel& kernel,
                              std::uint64_t shapes) const {
  if (shapes_ != shapes) return;
  if (std::exchange(kernel.accepted_at, shapes) != shapes)
    std::erase_if(kernel.accepted, [](const auto& one) { return one.shared_bytes != 0; });
  if (kernel.is_accepted(call) || kernel.accepted.size() >= SubmittedKernel::most_shapes) return;
  kernel.accepted.push_back({{call.block[0], call.block[1], call.block[2]}, call.shared_bytes});
}

bool HoldableLaunches::reaches_outside(const contextune_launch& call, const SubmittedKernel& kernel,
                                       CUcontext context) noexcept {
  if ((context != context_ || outside_version_ != memory_.changes().outside_version(device_)) &&
      !refresh(context)) {
    return true;
  }
  if (outside_.empty()) return false;
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    const auto* const bytes = static_cast<const char*>(call.kernel_params[i]);
    const std::size_t size = kernel.parameters[i].size_bytes;
    std::uint64_t word = 0;
    for (std::size_t at = 0; at + sizeof word <= size; at += sizeof word) {
      std::memcpy(&word, bytes + at, sizeof word);
      if (is_outside(word)) return true;
    }
  }
  return false;
}

bool HoldableLaunches::is_outside(std::uint64_t address) const noexcept {
  if (address < outside_.front().begin || address >= outside_.back().end) return false;
  const auto next =
      std::upper_bound(outside_.begin(), outside_.end(), address,
                       [](std::uint64_t value, const Range& one) { return value < one.begin; });
  return address < std::prev(next)->end;
}

bool HoldableLaunches::refresh(CUcontext context) noexcept {
  context_ = nullptr;
  if (driver_.cuCtxGetDevice(&device_) != CUDA_SUCCESS) return false;
  try {
    outside_version_ = memory_.changes().outside_version(device_);
    outside_.clear();
    for (const Allocation& one : memory_.allocations().outside_of(device_)) {
      outside_.push_back({one.begin, one.end()});
    }
    context_ = context;
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace contextune::intercept
