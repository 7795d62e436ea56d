#include "intercept/program/settled_launches.hpp"

#include <algorithm>

namespace contextune::intercept {

static_assert(offsetof(contextune_launch, block) == offsetof(contextune_launch, grid) + 12);
static_assert(offsetof(contextune_launch, shared_bytes) == offsetof(contextune_launch, grid) + 24);

void SettledLaunches::remember(const contextune_launch& call, const LaunchRegion* region,
                               CUcontext context, std::uint64_t version, const Variant* variant,
                               decltype(&cuLaunchKernel) launch) noexcept {
  SettledLaunch& known = launches_[place_of(call)];
  known.version = version;
  known.region = region;
  known.context = context;
  known.function = call.function;
  known.fn = call.fn;
  std::memcpy(known.shape, call.grid, sizeof known.shape);
  known.launch = variant == nullptr ? nullptr : launch;
  if (variant == nullptr) return;
  known.settled_function = variant->function;
  std::copy(variant->grid.begin(), variant->grid.end(), known.settled_shape);
  std::copy(variant->block.begin(), variant->block.end(), known.settled_shape + 3);
  known.settled_shape[6] = variant->shared_bytes;
}

}  // namespace contextune::intercept
