#include "intercept/submit/holdable_launches.hpp"

#include <exception>
#include <utility>
#include <vector>

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
                              std::uint64_t shapes) {
  if (shapes_ != shapes) return;
  if (std::exchange(kernel.accepted_at, shapes) != shapes)
    std::erase_if(kernel.accepted, [](const auto& one) { return one.shared_bytes != 0; });
  if (kernel.is_accepted(call) || kernel.accepted.size() >= SubmittedKernel::most_shapes) return;
  kernel.accepted.push_back({{call.block[0], call.block[1], call.block[2]}, call.shared_bytes});
}

}  // namespace contextune::intercept
