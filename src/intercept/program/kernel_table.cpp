#include "intercept/program/kernel_table.hpp"

#include <algorithm>

#include "gpu/image/kernel_name.hpp"

namespace contextune::intercept {
namespace {

bool same_kernel(const gpu::KernelIdentity& a, const gpu::KernelIdentity& b) {
  return a.code_hash == b.code_hash && a.symbol == b.symbol && a.module == b.module &&
         a.library == b.library && a.function == b.function;
}

}  // namespace

const DeviceFacts& KernelTable::facts_of(int device) {
  const std::lock_guard lock(mutex_);
  auto place = facts_.find(device);
  if (place == facts_.end()) {
    place = facts_.emplace(device, gpu::device_facts(driver_, device)).first;
  }
  return place->second;
}

std::vector<const gpu::KernelIdentity*> KernelTable::launched() {
  const std::lock_guard lock(mutex_);
  std::vector<const gpu::KernelIdentity*> all;
  for (const KnownKernel& kernel : kernels_) all.push_back(&kernel.identity);
  return all;
}

const KnownKernel* KernelTable::find(CUfunction handle, CUcontext context) {
  const std::uint64_t now = epoch();
  {
    const std::lock_guard lock(mutex_);
    const auto place = entries_.find({handle, context});
    if (place != entries_.end() && place->second.epoch == now) return place->second.kernel;
  }
  const gpu::CurrentContext current(driver_, context);
  const gpu::RelaxedCapture relaxed(driver_);
  std::string why;
  auto identity = gpu::identify(driver_, handle, why);
  const KnownKernel* known = nullptr;
  if (identity) {
    const int device = gpu::current_device(driver_).value_or(0);
    const DeviceFacts& facts = facts_of(device);
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_[{handle, context}];
    const auto before =
        std::find_if(entry.all.begin(), entry.all.end(),
                     [&](const KnownKernel* one) { return same_kernel(one->identity, *identity); });
    if (before != entry.all.end()) {
      entry.epoch = now;
      return entry.kernel = *before;
    }
    KnownKernel& kernel = kernels_.emplace_back();
    kernel.identity = std::move(*identity);
    for (const std::string& type : gpu::parameter_types(kernel.identity.symbol)) {
      kernel.parameters += (kernel.parameters.empty() ? "" : ", ") + type;
    }
    kernel.device = device;
    kernel.facts = &facts;
    // NCCL's kernels wait for each other across devices; how they are launched is NCCL's alone.
    const std::string& name = kernel.identity.name;
    const bool is_nccls = name.starts_with("nccl");
    if (!is_nccls) kernel.why_excluded = filter_.why_not({&name, 1});
    kernel.excluded = is_nccls || !kernel.why_excluded.empty();
    entry.all.push_back(&kernel);
    known = &kernel;
  } else {
    log_.fallback(FallbackReason::UnknownKernel, {}, {},
                  "A kernel runs as the program wrote it: " + why + ".");
  }
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[{handle, context}];
  entry.epoch = now;
  return entry.kernel = known;
}

}  // namespace contextune::intercept
