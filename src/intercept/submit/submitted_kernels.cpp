#include "intercept/submit/submitted_kernels.hpp"

#include <algorithm>
#include <exception>
#include <set>

#include "core/submission/submission_state.hpp"

namespace contextune::intercept {

bool SubmittedKernel::is_accepted(const contextune_launch& call) const noexcept {
  constexpr unsigned most_rows = 65535;
  const unsigned* grid = call.grid;
  if (grid[0] == 0 || grid[0] > 0x7fffffff || grid[1] == 0 || grid[1] > most_rows || grid[2] == 0 ||
      grid[2] > most_rows) {
    return false;
  }
  return std::any_of(accepted.begin(), accepted.end(), [&](const Shape& shape) {
    return shape.shared_bytes == call.shared_bytes &&
           std::equal(shape.block.begin(), shape.block.end(), call.block);
  });
}

std::vector<std::uint64_t> SubmittedKernels::chained() const {
  std::map<std::uint64_t, std::uint64_t> launches;
  {
    const std::lock_guard lock(mutex_);
    for (const SubmittedKernel& kernel : all_)
      if (kernel.chained != 0) launches[kernel.hash] += kernel.chained;
  }
  std::vector<std::uint64_t> hashes;
  hashes.reserve(launches.size());
  for (const auto& [hash, times] : launches) hashes.push_back(hash);
  std::stable_sort(hashes.begin(), hashes.end(),
                   [&](std::uint64_t a, std::uint64_t b) { return launches[a] > launches[b]; });
  return hashes;
}

SubmittedKernels::Images SubmittedKernels::images() const {
  std::map<std::uint64_t, bool> was_read;
  {
    const std::lock_guard lock(mutex_);
    for (const SubmittedKernel& kernel : all_) {
      if (!kernel.is_seen || kernel.image == 0) continue;
      bool& read = was_read.emplace(kernel.image, true).first->second;
      read = read && kernel.image_was_read;
    }
  }
  Images images;
  for (const auto& [key, read] : was_read) (read ? images.read : images.unread).push_back(key);
  return images;
}

std::string SubmittedKernels::names_of(std::uint32_t ordinary) const {
  std::set<std::string> names;
  {
    const std::lock_guard lock(mutex_);
    for (const SubmittedKernel& kernel : all_)
      if ((kernel.number & ordinary) != 0) names.insert(kernel.name);
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

void SubmittedKernels::number(std::vector<std::uint64_t> hashes) {
  if (hashes.size() > most_numbered_kernels) hashes.resize(most_numbered_kernels);
  const std::lock_guard lock(mutex_);
  numbered_ = std::move(hashes);
  for (SubmittedKernel& kernel : all_) kernel.number = number_of(kernel);
}

std::uint32_t SubmittedKernels::number_of(const SubmittedKernel& kernel) const noexcept {
  const auto at = std::find(numbered_.begin(), numbered_.end(), kernel.hash);
  return at == numbered_.end() ? 0 : 1U << (at - numbered_.begin());
}

SubmittedKernel* SubmittedKernels::find_slowly(CUfunction handle, CUcontext context,
                                               std::uint64_t now) noexcept {
  try {
    {
      const std::lock_guard lock(mutex_);
      const auto known = entries_.find({handle, context});
      if (known != entries_.end() && known->second.epoch == now) return known->second.kernel;
    }
    const KnownKernel* const known = kernels_.find(handle, context);
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_[{handle, context}];
    entry.epoch = now;
    entry.kernel = nullptr;
    if (known == nullptr) return nullptr;
    SubmittedKernel& kernel = all_.emplace_back();
    kernel.handle = handle;
    kernel.context = context;
    describe(*known, kernel);
    kernel.number = number_of(kernel);
    return entry.kernel = &kernel;
  } catch (const std::exception&) {
    return nullptr;
  }
}

/// Between the kernels of a graph, copies of tensor maps stay cached that are gone between launches
/// of a stream. A map that comes as an argument is constant; any argument of its size or larger may
/// be one.
bool SubmittedKernels::may_find_stale_map(const SubmittedKernel& kernel) noexcept {
  return kernel.order.maps &&
         std::none_of(kernel.parameters.begin(), kernel.parameters.end(),
                      [](const auto& one) { return one.size_bytes >= sizeof(CUtensorMap); });
}

void SubmittedKernels::describe(const KnownKernel& known, SubmittedKernel& kernel) {
  const gpu::KernelIdentity& identity = known.identity;
  kernel.kind = identity.kind;
  kernel.name = identity.name;
  kernel.hash = hash_of_kernel(identity.symbol);
  if (const void* const owner = variables_.owner_of(identity)) {
    if (const auto order = loads_.order_of(owner, identity.symbol)) {
      kernel.order = *order;
      kernel.order_known = true;
    }
    const SplicedLoads::Image image = loads_.image_of(owner);
    kernel.image = image.key;
    kernel.image_was_read = image.was_read;
  }
  if (known.excluded) {
    kernel.order.waits = false;
    return;
  }
  for (const ArgumentLayout& one : identity.parameters) {
    kernel.parameters.push_back(one);
    kernel.argument_bytes = std::max(kernel.argument_bytes,
                                     static_cast<std::uint32_t>(one.offset_bytes + one.size_bytes));
  }
  kernel.may_gather = knows_parameters_ && !kernel.order.launches &&
                      !identity.cluster_size_must_be_set && identity.required_cluster[0] == 0 &&
                      !may_find_stale_map(kernel) &&
                      kernel.parameters.size() <= SubmittedKernel::most_parameters &&
                      kernel.argument_bytes <= SubmittedKernel::most_argument_bytes;
  kernel.accepted.reserve(SubmittedKernel::most_shapes);
}

}  // namespace contextune::intercept
