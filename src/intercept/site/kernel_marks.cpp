#include "intercept/site/kernel_marks.hpp"

namespace contextune::intercept {

const RegionMark* KernelMarks::find(CUfunction function, CUcontext context) {
  LaunchKey key;
  key.function = function;
  key.context = context;
  const std::uint64_t epoch = kernels_.epoch();
  Entry* entry = cache_.find(key);
  if (entry != nullptr && entry->epoch.load(std::memory_order_acquire) == epoch) {
    return entry->mark.load(std::memory_order_relaxed);
  }
  const KnownKernel* kernel = kernels_.find(function, context);
  const RegionMark* found = nullptr;
  for (const RegionMark* mark : marks_) {
    if (kernel != nullptr && mark->kernel->finds(kernel->identity.name)) {
      found = mark;
      break;
    }
  }
  const std::lock_guard lock(mutex_);
  entry = cache_.find(key);
  const bool fresh = entry == nullptr;
  if (fresh) {
    entry = &entries_.emplace_back();
    entry->key = key;
  }
  entry->mark.store(found, std::memory_order_relaxed);
  entry->epoch.store(epoch, std::memory_order_release);
  if (fresh) cache_.insert(entry);
  return found;
}

}  // namespace contextune::intercept
